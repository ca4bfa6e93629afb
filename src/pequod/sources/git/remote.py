"""The address of a repository: a transport that is allowed, a host, and a path on it."""

import re
from dataclasses import dataclass, replace
from ipaddress import AddressValueError, IPv6Address, ip_address
from urllib.parse import unquote

_HTTP = re.compile(r"(?P<scheme>https?)://(?P<authority>[^/]*)/(?P<path>.*)", re.DOTALL)
_SSH = re.compile(r"ssh://(?:(?P<user>[^@/]*)@)?(?P<authority>[^/]*)/(?P<path>.*)", re.DOTALL)
_SCP = re.compile(r"(?P<user>[^@/:]*)@(?P<authority>[^/:]*):(?P<path>.*)", re.DOTALL)
_AUTHORITY = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[^:\[\]]+)(?::(?P<port>[0-9]{1,5}))?")
_HOST = re.compile(r"[a-z0-9]([a-z0-9_-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9_-]*[a-z0-9])?)*")
_NUMBER = re.compile(r"([0-9]+|0x[0-9a-f]*)")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_SEGMENT = re.compile(r"(?:[A-Za-z0-9_.~+@=,!-]|%[0-9A-Fa-f]{2})+")
_PORTS = {"https": 443, "http": 80, "ssh": 22}


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """Where a repository is, in parts."""

    scheme: str
    host: str
    """A name, or an address without brackets."""
    port: int
    user: str = ""
    path: str
    url: str
    """What git is told; two that differ only in spelling are equal."""

    @property
    def by_ssh(self) -> bool:
        """Whether a key is needed rather than a password."""
        return self.scheme == "ssh"

    @property
    def authority(self) -> str:
        """The host, and the port unless it is the usual one."""
        usual = self.port == _PORTS[self.scheme]
        return _bracketed(self.host) if usual else f"{_bracketed(self.host)}:{self.port}"

    @property
    def origin(self) -> str:
        """What credentials are bound to."""
        return f"{self.scheme}://{self.authority}"


def remote_of(url: str, *, allow_http: bool) -> Remote | str:
    """The parts of an address, or what is wrong with it."""
    found = _HTTP.fullmatch(url) or _SSH.fullmatch(url) or _SCP.fullmatch(url)
    if found is None:
        return "only https:// and ssh:// lead to a repository"
    parts = {"scheme": "ssh", "user": None, **found.groupdict()}
    return _checked(parts, scp=found.re is _SCP, allow_http=allow_http)


def _checked(parts: dict[str, str | None], *, scp: bool, allow_http: bool) -> Remote | str:
    scheme, user, path = parts["scheme"] or "", parts["user"], (parts["path"] or "").rstrip("/")
    authority = _AUTHORITY.fullmatch(parts["authority"] or "")
    host = authority["host"].strip("[]").lower() if authority else ""
    port = int((authority and authority["port"]) or _PORTS[scheme])
    problem = (
        _transport_problem(scheme, parts["authority"] or "", allow_http=allow_http)
        or ("the host cannot be understood" if authority is None else _host_problem(host))
        or ("the port is not between 1 and 65535" if not 1 <= port <= 65535 else None)
        or ("the user name has odd characters" if not _fine_user(user) else None)
        or _path_problem(path)
    )
    if problem is not None:
        return problem
    remote = Remote(scheme=scheme, host=host, port=port, user=user or "", path=path, url="")
    return replace(remote, url=_url(remote, scp=scp))


def _url(remote: Remote, *, scp: bool) -> str:
    if scp:
        return f"{remote.user}@{remote.host}:{remote.path}"
    user = f"{remote.user}@" if remote.user else ""
    return f"{remote.scheme}://{user}{remote.authority}/{remote.path}"


def _transport_problem(scheme: str, authority: str, *, allow_http: bool) -> str | None:
    if scheme == "http" and not allow_http:
        return "http:// lets anybody read and change what is transferred"
    if "@" in authority:
        return "credentials do not belong into an address: put them into a Secret"
    return None


def _fine_user(user: str | None) -> bool:
    return user is None or _USER.fullmatch(user) is not None


def _host_problem(host: str) -> str | None:
    if ":" in host:
        return _ipv6_problem(host)
    if len(host) > 253 or not _HOST.fullmatch(host):
        return "the host is not a name or an address"
    if _NUMBER.fullmatch(host.rpartition(".")[2]):
        # Programs disagree about 2130706433, 127.1 and 0177.0.0.1: one checks, another connects.
        try:
            ip_address(host)
        except ValueError:
            return "the host looks like an address, but is none"
    return None


def _ipv6_problem(host: str) -> str | None:
    try:
        IPv6Address(host)
    except AddressValueError:
        return "the host is not an IPv6 address"
    return None


def _path_problem(path: str) -> str | None:
    if not path:
        return "the path of the repository is missing"
    for raw in path.removeprefix("/").split("/"):
        segment = unquote(raw, errors="replace")
        if not _SEGMENT.fullmatch(raw) or not segment.isprintable():
            return "the path of the repository has empty parts or odd characters"
        if segment in {".", ".."} or "/" in segment or "\\" in segment:
            return "the path of the repository climbs or has encoded slashes"
        if segment.startswith("-"):
            return "a part of the repository's path begins with a dash"
    return None


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
