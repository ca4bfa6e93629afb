"""ConfigMaps as modules: texts that are CUE files, and archives of whole trees."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from pequod.base.threads import finished
from pequod.sources import keeping
from pequod.sources.archive import lay_over
from pequod.sources.artifact import Artifact
from pequod.sources.errors import MissingError
from pequod.sources.store import Store
from pequod.sources.tree import TreeError
from pequod.sources.unpacking import Unpacking

_FILE = ".cue"
_ARCHIVES = (".tar.gz", ".tgz", ".tar", ".zip")


async def add(
    store: Store, name: str, data: Mapping[str, str], binary_data: Mapping[str, bytes]
) -> Artifact:
    """Keep what a ConfigMap holds; `name` is for messages, `binary_data` is decoded.

    Keys that are neither CUE files nor archives are ignored.
    """
    files = {key: text.encode() for key, text in data.items() if key.endswith(_FILE)}
    binary_files = {key: one for key, one in binary_data.items() if key.endswith(_FILE)}
    archives = {key: one for key, one in binary_data.items() if key.endswith(_ARCHIVES)}
    if not (files or binary_files or archives):
        raise MissingError(
            name,
            step="keys",
            problem="it has no key that ends with .cue, and no archive in binaryData",
            next_step=f"add *.cue to data, or *{', *'.join(_ARCHIVES)} to binaryData",
        )

    def write(folder: Path) -> None:
        unpacking = Unpacking(folder, store.limits)
        for key, content in (*sorted(files.items()), *sorted(binary_files.items())):
            unpacking.add_file(key, (content,))
        for key, content in sorted(archives.items()):
            _unpack(key, content, unpacking)

    async def fill(folder: Path) -> None:
        await finished(write, folder)

    digest = await keeping.kept(store, fill, reference=name, next_step="correct the ConfigMap")
    return await keeping.artifact(store, digest, digest, reference=name)


def _unpack(key: str, content: bytes, unpacking: Unpacking) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        try:
            lay_over(Path(file.name), unpacking)
        except TreeError as error:
            raise type(error)(f"{key}: {error}") from error
