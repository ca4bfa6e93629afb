"""The layers of an artifact become one tree.

Archives are extracted over each other in their order; a layer that is a single file needs a title.
What a layer is is said by its media type, what an archive is by its content.
"""

from pathlib import Path

from pequod.evaluator.registry import Layer, Pulled
from pequod.sources.archive import lay_over
from pequod.sources.limits import Limits
from pequod.sources.packing import MODULE_FILE
from pequod.sources.tree import TreeError
from pequod.sources.unpacking import Unpacking, WithoutTop

CUE_CONFIG = "application/vnd.cue.module.v1+json"
CUE_CONTENT = "application/zip"
CUE_MODULE_FILE = "application/vnd.cue.modulefile.v1"
PEQUOD_CONFIG = "application/vnd.pequod.module.config.v1+json"
PEQUOD_CONTENT = "application/vnd.pequod.module.v1.tar+gzip"

_CHART = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
_IGNORED = frozenset(
    {
        "application/vnd.cncf.helm.chart.provenance.v1.prov",
        "application/vnd.oci.empty.v1+json",
    }
)
_ARCHIVES = (".tar", ".tar+gzip", ".tar.gzip", "/zip", "/gzip", "/x-tar", "/x-gzip", "/x-gtar")
_UNTYPED = "application/vnd.oci.image.layer.v1.tar"
"""What oras calls every file that is pushed without a type."""
_TITLE = "org.opencontainers.image.title"
_UNPACK = "io.deis.oras.content.unpack"
_CHUNK = 2**20


def assemble(pulled: Pulled, folder: Path, limits: Limits) -> None:
    """Write what the layers of an artifact hold into an empty folder; raises TreeError."""
    unpacking = Unpacking(folder, limits)
    wanted = [layer for layer in pulled.layers if layer.media_type not in _IGNORED]
    for layer in wanted:
        if layer.media_type == CUE_MODULE_FILE and pulled.config_type == CUE_CONFIG:
            _check_module_file(Path(layer.file), folder)
        else:
            _lay(layer, unpacking)
    if not wanted:
        raise TreeError("it has no content")


def _lay(layer: Layer, unpacking: Unpacking) -> None:
    title = layer.annotations.get(_TITLE, "")
    untyped = layer.media_type == _UNTYPED and layer.annotations.get(_UNPACK) != "true"
    if layer.media_type == _CHART:
        lay_over(Path(layer.file), WithoutTop(unpacking))
    elif layer.media_type.endswith(_ARCHIVES) and not (title and untyped):
        lay_over(Path(layer.file), unpacking)
    elif title:
        with Path(layer.file).open("rb") as file:
            unpacking.add_file(title, iter(lambda: file.read(_CHUNK), b""))
    else:
        raise TreeError(
            f"a layer is a {layer.media_type[:100]}, which is neither an archive that can be "
            "read nor a file with a title"
        )


def _check_module_file(file: Path, folder: Path) -> None:
    """CUE resolves imports by a copy of the module's own file: it must be one."""
    own = folder / MODULE_FILE
    if not own.is_file() or own.read_bytes() != file.read_bytes():
        raise TreeError(f"{MODULE_FILE} is not the same as the one that the registry shows")
