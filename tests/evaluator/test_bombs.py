"""What was written to burn time and memory, or to get at what is not its own.

Each ends in an error within small bounds, leaves the folders beside its tree alone, and the next
one is served.
"""

import asyncio
import gzip
import hashlib
import io
import tarfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

import evaluators
from pequod.evaluator.errors import (
    EvaluationError,
    MissingError,
    ModuleError,
    OverLimitError,
)
from pequod.evaluator.pool import Pool
from pequod.evaluator.worker import Bounds

SMALL = Bounds(memory_bytes=256 * 2**20, output_bytes=4 * 2**20)
ENOUGH = 1.0
"""Seconds for a bomb."""


@dataclass(frozen=True)
class Bomb:
    """A verb, what it is asked, and the files that it is asked about."""

    verb: str
    files: dict[str, str | bytes] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    ends: type[EvaluationError] | tuple[type[EvaluationError], ...] = (OverLimitError, ModuleError)


def cue(body: str, *, imports: str = "") -> Bomb:
    names = "".join(f'import "{name}"\n' for name in imports.split())
    text = f"package app\n{names}#Input: {{...}}\ninput: _\n{body}\n"
    params: dict[str, Any] = {"input": {}, "context": {}}
    return Bomb("cue.render", {"a.cue": text}, params)


def doubled(first: str, step: Callable[[int], str], times: int) -> str:
    return first + "\n" + "\n".join(step(number) for number in range(1, times + 1))


def each_ten_times(number: int) -> str:
    return f"_x{number}: [" + f"_x{number - 1}," * 10 + "]"


CUE = {
    "a square of ranges": cue(
        "graph: nodes: [for a in list.Range(0, 1e6, 1) for b in list.Range(0, 1e6, 1) {a+b}]",
        imports="list",
    ),
    "a range without end": cue("graph: nodes: list.Range(0, 1e12, 1)", imports="list"),
    "a cross product": cue(
        "_r: list.Range(0, 300, 1)\n"
        "graph: nodes: [for a in _r for b in _r for c in _r for d in _r {a*b*c*d}]",
        imports="list",
    ),
    "a product of disjunctions": cue(
        "".join(f"_d: {{a{n}: 1}} | {{b{n}: 1}} | {{c{n}: 1}}\n" for n in range(16))
        + "graph: nodes: [_d]"
    ),
    "laughs": cue(doubled("_x0: [1]", each_ten_times, 9) + "\ngraph: nodes: _x9"),
    "a text that doubles": cue(
        doubled('_s0: "aaaaaaaa"', lambda n: f"_s{n}: _s{n - 1} + _s{n - 1}", 40)
        + "\ngraph: nodes: [_s40]"
    ),
    "a list that doubles": cue(
        doubled("_l0: [1]", lambda n: f"_l{n}: list.Concat([_l{n - 1}, _l{n - 1}])", 40)
        + "\ngraph: nodes: _l40",
        imports="list",
    ),
    "a text repeated": cue('graph: nodes: [strings.Repeat("a", 10000000000)]', imports="strings"),
    "a list repeated": cue("graph: nodes: list.Repeat([1], 1000000000)", imports="list"),
    "deep nesting of source": cue("graph: nodes: " + "[" * 200_000 + "]" * 200_000),
    "deep nesting of structs": cue("graph: " + "{a: " * 100_000 + "1" + "}" * 100_000),
    "a structure within itself": cue("#L: {next: #L}\ngraph: nodes: [#L]"),
    "a mutual structure": cue("#A: {b: #B}\n#B: {a: #A}\ngraph: nodes: [#A]"),
    "fields that make more fields": cue(
        'x: {a: 1, for k, v in x {"\\(k)a": v}}\ngraph: nodes: [x]'
    ),
    "a number that needs itself": cue("x: x + 1\ngraph: nodes: [x]"),
    "a text that needs itself": cue('x: "\\(x)x"\ngraph: nodes: [x]'),
    "a huge power": cue("graph: nodes: [math.Pow(10, 1000000000)]", imports="math"),
    "squares of squares": cue(
        doubled("_n0: 123456789", lambda n: f"_n{n}: _n{n - 1} * _n{n - 1}", 30)
        + "\ngraph: nodes: [_n30]"
    ),
    "a number of issue 3574": cue("graph: nodes: [12e82-1/3*[5e5]]"),
    "a regular expression of repetitions": cue('graph: nodes: ["a" =~ "((a{1000}){1000}){1000}"]'),
    "matchN upon matchN": cue(
        "#T: matchN(1, [#T, #T, {a: #T}])\ngraph: nodes: [#T & {a: {a: {a: {a: {a: 1}}}}}]"
    ),
    "matchN of all": cue(
        doubled("#M0: {a?: 1}", lambda n: f"#M{n}: matchN(>=0, [#M{n - 1}, #M{n - 1}])", 30)
        + "\ngraph: nodes: [#M30 & {a: 1}]"
    ),
    "a template that fills memory": cue(
        'graph: nodes: [template.Execute("{{range $a := .}}{{range $b := $}}{{range $c := $}}'
        '{{$a}}{{$b}}{{$c}}{{end}}{{end}}{{end}}", list.Range(0, 5000, 1))]',
        imports="text/template list",
    ),
    "brackets for a JSON parser": cue(
        'graph: nodes: [json.Unmarshal(strings.Repeat("[", 50000000))]',
        imports="encoding/json strings",
    ),
    "laughs for a YAML parser": cue(
        '_y: """\n\ta: &a [x,x,x,x,x,x,x,x,x,x]\n'
        + "".join(
            f"\t{n}: &{n} [{','.join(['*' + p] * 10)}]\n"
            for p, n in zip("abcdefgh", "bcdefghi", strict=True)
        )
        + '\t"""\ngraph: nodes: [yaml.Unmarshal(_y)]',
        imports="encoding/yaml",
    ),
    "a hundred thousand nodes": cue(
        'graph: nodes: [for n in list.Range(0, 100000, 1) {id: "node-\\(n)", object: {kind: "A"}}]',
        imports="list",
    ),
    "a sort of many": cue(
        "graph: nodes: list.Sort(list.Range(0, 1e6, 1), {x: number, y: number, less: x > y})",
        imports="list",
    ),
    "an input that the schema multiplies": cue(
        f"#In: [...#In] | {{[string]: #In}}\ngraph: nodes: [#In & {'[' * 20}{{a: 1}}{']' * 20}]"
    ),
}

CHART = "apiVersion: v2\nname: tiny\nversion: 0.1.0\n"


def packed(*entries: tuple[tarfile.TarInfo, bytes], padding: int = 0) -> bytes:
    """A chart as an archive, with other entries beside what it needs."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as archive:
        for about, content in [(tarfile.TarInfo("tiny/Chart.yaml"), CHART.encode()), *entries]:
            about.size = len(content)
            archive.addfile(about, io.BytesIO(content))
        if padding:
            about = tarfile.TarInfo("tiny/files/zeros")
            about.size = padding
            archive.addfile(about, _Zeros())
    return target.getvalue()


class _Zeros(io.RawIOBase):
    def read(self, size: int = -1) -> bytes:
        return bytes(size)


def entry(name: str, *, kind: bytes = tarfile.REGTYPE, to: str = "") -> tarfile.TarInfo:
    about = tarfile.TarInfo(name)
    about.type, about.linkname = kind, to
    return about


def nested_archive(levels: int) -> bytes:
    """Ten charts in ten charts in ten charts."""
    inner = packed()
    for _ in range(levels):
        inner = packed(*((entry(f"tiny/charts/tiny{n}.tgz"), inner) for n in range(10)))
    return inner


def many_entries(number: int) -> bytes:
    """The same entry again and again; Python would take its time for different ones."""
    one = entry("tiny/files/a").tobuf()
    start = gzip.decompress(packed()).rstrip(b"\0")
    return gzip.compress(start.ljust(1024, b"\0") + one * number + bytes(1024), compresslevel=1)


def helm(template: str = "", **files: str) -> Bomb:
    params = {"release": "a", "namespace": "b", "values": {}}
    named = {name.replace("__", "/").replace("_", "."): text for name, text in files.items()}
    return Bomb("helm", {"Chart.yaml": CHART, "templates/a.yaml": template, **named}, params)


def helm_archive(content: bytes) -> Bomb:
    params = {"release": "a", "namespace": "b", "values": {}, "path": "a.tgz"}
    return Bomb("helm", {"a.tgz": content}, params)


LAUGHING_VALUES = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{n}: &{n} [{','.join(['*' + p] * 10)}]\n" for p, n in zip("abcdefgh", "bcdefghi", strict=True)
)
HELM = {
    "a text repeated": helm('{{ repeat 1000000000 "aaaaaaaa" }}'),
    "a range without end": helm("{{ range until 1000000000 }}a{{ end }}"),
    "a square of ranges": helm(
        "{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}"
    ),
    "a sequence": helm("{{ seq 0 1 1000000000 }}"),
    "an include of itself": helm('{{ define "x" }}{{ include "x" . }}{{ end }}{{ include "x" . }}'),
    "a template of itself": helm(
        '{{ define "x" }}{{ template "x" . }}{{ end }}{{ template "x" . }}'
    ),
    "includes that double": helm(
        "".join(
            f'{{{{ define "x{n}" }}}}' + f'{{{{ include "x{n - 1}" . }}}}' * 2 + "{{ end }}"
            for n in range(1, 40)
        )
        + '{{ define "x0" }}a{{ end }}{{ include "x39" . }}'
    ),
    "a tpl of itself": helm(
        "{{ tpl .Values.a . }}", values_yaml="a: '{{ tpl .Values.a . }}{{ tpl .Values.a . }}'\n"
    ),
    "a text that doubles": helm(
        '{{ $x := "aaaaaaaa" }}{{ range until 40 }}{{ $x = printf "%s%s" $x $x }}{{ end }}{{ $x }}'
    ),
    "passwords": helm('{{ range until 1000 }}{{ derivePassword 1 "long" "p" "u" "s" }}{{ end }}'),
    "certificates": helm('{{ range until 1000 }}{{ genSelfSignedCert "a" nil nil 1 }}{{ end }}'),
    "keys": helm('{{ range until 1000 }}{{ genPrivateKey "rsa" }}{{ end }}'),
    "hashes of passwords": helm('{{ range until 1000 }}{{ htpasswd "a" "b" }}{{ end }}'),
    "a regular expression of repetitions": helm(
        '{{ regexMatch "((a{1000}){1000}){1000}" "aaaa" }}'
    ),
    "values that laugh": helm("{{ .Values | toYaml }}", values_yaml=LAUGHING_VALUES),
    "a schema within itself": helm(
        "", values_schema_json='{"allOf": [{"$ref": "#"}, {"$ref": "#"}]}'
    ),
    "a deep schema": helm("", values_schema_json='{"not":' * 5000 + "{}" + "}" * 5000),
    "objects without end": helm("{{ range until 20000 }}\n---\nkind: A\n{{ end }}"),
    "zeros, a thousand to one": helm_archive(packed(padding=300 * 2**20)),
    "a name that climbs": helm_archive(packed((entry("tiny/../../canary"), b"climbed"))),
    "an absolute name": helm_archive(packed((entry("tiny//etc/canary"), b"climbed"))),
    "archives in archives": helm_archive(nested_archive(8)),
    "no archive at all": helm_archive(b"\x1f\x8b" + b"\xff" * 100),
}


def kustomize(**files: str) -> Bomb:
    named = {f"{name}/kustomization.yaml": text for name, text in files.items()}
    return Bomb("kustomize", {**named}, {"path": "a"}, (OverLimitError, ModuleError, MissingError))


def kustomized(resource: str, kustomization: str = "") -> Bomb:
    files: dict[str, str | bytes] = {
        "kustomization.yaml": "resources: [a.yaml]\n" + kustomization,
        "a.yaml": resource,
    }
    return Bomb("kustomize", files)


OBJECT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
KUSTOMIZE = {
    "bases in a circle": kustomize(a="resources: [../b]\n", b="resources: [../a]\n"),
    "a base of itself": kustomize(a="resources: [../a]\n"),
    "components in a circle": kustomize(
        a="components: [../b]\n", b="kind: Component\ncomponents: [../b]\n"
    ),
    "objects that laugh": kustomized(OBJECT + LAUGHING_VALUES),
    "deep nesting": kustomized(OBJECT + "data: " + "[" * 20_000 + "]" * 20_000 + "\n"),
    "a patch at a huge index": kustomized(
        OBJECT + "list: []\n",
        "patches: [{target: {kind: ConfigMap}, "
        "patch: '[{op: add, path: /list/4294967295, value: 1}]'}]\n",
    ),
    "a replacement at a huge index": kustomized(
        OBJECT + "list: [a]\n",
        "replacements: [{source: {kind: ConfigMap, fieldPath: metadata.name}, targets: "
        "[{select: {kind: ConfigMap}, fieldPaths: [list.4294967295.a], "
        "options: {create: true}}]}]\n",
    ),
}


def rego(body: str) -> Bomb:
    return Bomb("rego", {"a.rego": f"package main\n\n{body}\n"}, {"input": {}})


REGO = {
    "a square of ranges": rego(
        "deny contains x if {\n\tsome a in numbers.range(1, 100000)\n"
        "\tsome b in numbers.range(1, 100000)\n\tx := a * b\n\tx < 0\n}"
    ),
    "a range without end": rego("deny contains numbers.range(1, 10000000000) if true"),
    "a shift": rego("deny contains bits.lsh(1, 100000000000) if true"),
    "a template that fills memory": rego(
        'deny contains strings.render_template("{{range $a := .x}}{{range $b := $.x}}'
        '{{range $c := $.x}}{{$a}}{{$b}}{{$c}}{{end}}{{end}}{{end}}", '
        '{"x": numbers.range(1, 5000)}) if true'
    ),
    "a rule within itself": rego("deny contains x if deny[x]"),
    "sets of sets": rego(
        "s := {x | some x in numbers.range(1, 3000)}\n"
        "deny contains count({[a, b, c] | some a in s; some b in s; some c in s}) if true"
    ),
    "a reachable graph": rego(
        'names := [sprintf("%d", [n]) | some n in numbers.range(1, 3000)]\n'
        "g := {n: names | some n in names}\n"
        'deny contains count(graph.reachable_paths(g, {"1"})) if true'
    ),
}


def yaml(text: str) -> Bomb:
    return Bomb("yaml", {}, {"name": "a", "text": text})


OTHERS = {
    "YAML that laughs": yaml(LAUGHING_VALUES),
    "YAML of brackets": yaml("[" * 1_000_000),
    "YAML of flow keys": yaml("{a: " * 9_000 + "1" + "}" * 9_000),
    "YAML of aliases": yaml("a: &a [" + "x," * 5000 + "]\nb: [" + "*a," * 5000 + "]\n"),
    "YAML of documents": yaml("a: 1\n---\n" * 200_000),
}
CORPUS = {
    f"{language}: {name}": bomb
    for language, bombs in (
        ("cue", CUE),
        ("helm", HELM),
        ("kustomize", KUSTOMIZE),
        ("rego", REGO),
        ("other", OTHERS),
    )
    for name, bomb in bombs.items()
}
CEL = {
    "nested comprehensions": "self.all(a, self.all(b, self.all(c, self.all(d, a + d >= 0))))",
    "a text that grows": "self.map(a, self.map(b, self.map(c, string(self)))).size() > 0",
    "a regular expression of repetitions": "'a'.matches('((a{1000}){1000}){1000}')",
    "lists of lists": "self.map(a, self.map(b, self.map(c, self)))",
}


def listing(folder: Path) -> dict[str, str]:
    """Every file below a folder, by what it holds."""
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def laid(root: Path, bomb: Bomb) -> dict[str, Any]:
    """What a worker is asked, once the files are where they belong."""
    for name, content in bomb.files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    if bomb.files:
        return {"tree": str(root), "path": "", **bomb.params}
    return bomb.params


async def good(pool: Pool, root: Path, *, owner: str = "") -> None:
    """Render something that is in order."""
    sound = cue("graph: nodes: [1]")
    answer = await pool.ask(sound.verb, laid(root, sound), owner=owner)
    assert msgspec.json.decode(answer)["graph"] == {"nodes": [1]}


@pytest.mark.parametrize("bomb", CORPUS.values(), ids=CORPUS.keys())
async def test_a_bomb_ends_in_an_error_and_the_next_one_is_served(
    tmp_path: Path, bomb: Bomb
) -> None:
    canary = evaluators.write(tmp_path / "canary", {"canary": "alive", "tree/canary": "alive"})
    tree = canary / "scratch"
    params = laid(tree, bomb)
    before = listing(canary)
    async with evaluators.pool(size=1, bounds=SMALL) as pool:
        with pytest.raises(bomb.ends) as caught:
            await pool.ask(bomb.verb, params, seconds=ENOUGH)
        assert len(str(caught.value)) < 5_000
        await good(pool, tmp_path / "good")
    assert listing(canary) == before


@pytest.mark.parametrize("expression", CEL.values(), ids=CEL.keys())
@pytest.mark.parametrize("cost_limit", [100_000, 10**18])
async def test_an_expression_ends_by_its_cost_or_by_the_bounds(
    expression: str, cost_limit: int
) -> None:
    params = {
        "expressions": [expression],
        "variables": {"self": list(range(1000))},
        "costLimit": cost_limit,
    }
    async with evaluators.pool(size=1, bounds=SMALL) as pool:
        try:
            answer = msgspec.json.decode(await pool.ask("cel", params, seconds=ENOUGH))
        except OverLimitError:
            assert cost_limit > 10**6
        else:
            [only] = answer["answers"]
            assert only["failure"]["kind"] in {"limit", "module"}


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE]
)
async def test_special_entries_of_an_archive_have_no_content(tmp_path: Path, kind: bytes) -> None:
    """A chart is read in memory: a link in it leads nowhere."""
    evaluators.write(tmp_path, {"canary": "canary"})
    template = b"kind: A\ndata: {{ .Files.Get `files/link` | quote }}\n"
    content = packed(
        (entry("tiny/templates/a.yaml"), template),
        (entry("tiny/files/link", kind=kind, to=str(tmp_path / "canary")), b""),
    )
    async with evaluators.pool(size=1, bounds=SMALL) as pool:
        answer = await pool.ask("helm", laid(tmp_path / "tree", helm_archive(content)))
    assert msgspec.json.decode(answer)["objects"] == [{"kind": "A", "data": ""}]


async def test_an_archive_of_many_entries_is_read_or_refused_within_the_bounds(
    tmp_path: Path,
) -> None:
    bomb = helm_archive(many_entries(100_000))
    async with evaluators.pool(size=1, bounds=SMALL) as pool:
        with suppress(OverLimitError, ModuleError):
            await pool.ask("helm", laid(tmp_path / "tree", bomb), seconds=ENOUGH)
        await good(pool, tmp_path / "good")


async def test_a_neighbour_is_served_while_somebody_sends_bombs(tmp_path: Path) -> None:
    bomb = CUE["a cross product"]
    async with evaluators.pool(size=2, bounds=Bounds(seconds=60)) as pool:
        asked = laid(tmp_path / "bomb", bomb)
        bombs = [asyncio.create_task(pool.ask(bomb.verb, asked, owner="bomber")) for _ in range(3)]
        await asyncio.sleep(0)  # all of them are ahead of the neighbour
        for _ in range(5):
            await good(pool, tmp_path / "good", owner="neighbour")
        assert not any(task.done() for task in bombs)
        for task in bombs:
            task.cancel()
        await asyncio.gather(*bombs, return_exceptions=True)
        await good(pool, tmp_path / "good", owner="bomber")


async def test_no_worker_can_open_a_socket_or_start_a_program(tmp_path: Path) -> None:
    called: list[object] = []

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        called.append(writer)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    remote = f"configMapGenerator: [{{name: a, files: ['http://127.0.0.1:{port}/canary']}}]\n"
    async with server, evaluators.pool(size=1) as pool:
        params = laid(tmp_path, Bomb("kustomize", {"kustomization.yaml": remote}))
        with pytest.raises(ModuleError, match="operation not permitted"):
            await pool.ask("kustomize", params)
        [worker] = pool.workers
        for thread in Path(f"/proc/{worker.pid}/task").iterdir():
            status = dict(
                line.split(":\t", 1) for line in (thread / "status").read_text().splitlines()
            )
            assert (status["Seccomp"], status["NoNewPrivs"]) == ("2", "1")
    assert called == []
