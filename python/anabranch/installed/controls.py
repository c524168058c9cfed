"""Installs, shows and removes congestion controls.

Each step of an installation can be repeated, and the record precedes it: a process that is killed at any point
leaves a state that a second installation completes and a removal undoes.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from anabranch.errors import RunFailedError, UserError, nearest, require_linux
from anabranch.files import owner
from anabranch.files.files import MAX_TEXT_BYTES, read_bytes
from anabranch.files.output_file import write_whole
from anabranch.installed import cgroups, connections, record, routes, unit
from anabranch.installed.record import Record, Scope

_DEFAULT = Path("/proc/sys/net/ipv4/tcp_congestion_control")
_SACK = Path("/proc/sys/net/ipv4/tcp_sack")
_FALLBACKS = ("cubic", "reno")
"""Controls for a default whose former value is unknown or gone."""
_NAMED = re.compile(rb'\.name\s*=\s*"([A-Za-z0-9_+-]{1,15})"')
"""The name in a ``struct tcp_congestion_ops``."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Scopes:
    """The scopes that an installation adds, as they were given."""

    default: bool = False
    routes: tuple[str, ...] = ()
    cgroups: tuple[str, ...] = ()

    def checked(self) -> Iterator[Scope]:
        """The scopes.

        Raises:
            UserError: There is no such route or cgroup.
        """
        if self.default:
            yield Scope("default")
        for text in self.routes:
            network = routes.prefix(text)
            routes.required(network)
            yield Scope("route", str(network))
        for text in self.cgroups:
            yield Scope("cgroup", str(cgroups.place(text)))


def install(given: str, scopes: Scopes, say: Say) -> None:
    """Load a control, and make it the control of the scopes, now and after each start of the machine.

    Args:
        given: A control that ships, or a C file.
        scopes: The connections that use it by default.
        say: Called with each remark.

    Raises:
        UserError: There is no such control, route or cgroup; another installed control has the scope; or the
            privilege is missing.
        RunFailedError: The kernel refuses it.
    """
    _require_root("install", given)
    name = _known(given)
    wanted = list(scopes.checked())
    with record.locked():
        if name is not None:
            _check_free(name, wanted)
            made = _install_known(name, say)
        else:
            made = _install_file(given, wanted, say)
        for scope in wanted:
            made = _adopt(made, scope)
        said = f"{made.name} is installed" + "".join(f", {one.shown()}" for one in made.scopes)
        _keep(made, said, say)
        if not made.scopes:
            say(
                f"only programs that choose it use it: --default, --route PREFIX or --cgroup PATH, or "
                f'setsockopt(TCP_CONGESTION, "{made.name}")'
            )
        warning = _warning(made.name)
        if warning is not None:
            say(warning)


def remove(name: str, say: Say) -> None:
    """Undo an installation, also one that was interrupted. Connections that use the control keep it.

    Raises:
        UserError: It is not installed, or the privilege is missing.
    """
    _require_root("remove", name)
    kernel_name = _shipped().get(name, name)
    with record.locked():
        for folder in (record.STATE, unit.FOLDER):
            owner.remove_dead(folder)
        found = record.find(kernel_name)
        is_loaded = kernel_name in _loaded()
        if found is None and not is_loaded and unit.file_of(kernel_name) is None:
            names = [one.name for one in record.all_records()]
            there = nearest(kernel_name, names) if names else "none is: anabranch cc status"
            raise UserError(f"no control `{name}` is installed", hint=there)
        for scope in found.scopes if found is not None else ():
            _restore(kernel_name, scope, say)
        if found is None and _default() == kernel_name:
            _restore(kernel_name, Scope("default"), say)
        cgroups.detach_all(kernel_name)
        unit.remove(kernel_name)
        if is_loaded:
            _unload(kernel_name)
        _forget(found or Record(kernel_name, kernel_name))
    use = connections.by_control().get(kernel_name)
    kept = f"; {use.connections} open connections keep it until they end" if use is not None else ""
    say(f"{kernel_name} is removed{kept}")


def status(name: str | None) -> dict[str, Any]:
    """The installed controls, as a JSON document.

    Args:
        name: Only this control.

    Raises:
        UserError: It is neither installed nor loaded.
    """
    require_linux("the status of congestion controls")
    records = {one.name: one for one in record.all_records()}
    loaded = _loaded()
    names = sorted({*records, *loaded})
    if name is not None:
        kernel_name = _shipped().get(name, name)
        if kernel_name not in names:
            there = nearest(kernel_name, names) if names else f"anabranch cc install {name}"
            raise UserError(f"no control `{name}` is installed or loaded", hint=there)
        names = [kernel_name]
    uses = connections.by_control()
    return {
        "format": 1,
        "default": _default(),
        "systemd": unit.is_running(),
        "controls": [_state(one, records.get(one), uses.get(one, connections.Use())) for one in names],
    }


def _state(name: str, found: Record | None, use: connections.Use) -> dict[str, Any]:
    ships_as, file = _ships_as(name), unit.file_of(name)
    return {
        "name": name,
        "ships_as": None if ships_as == name else ships_as,
        "installed": found is not None,
        "available": name in _listed()["available"],
        "unit": None if file is None else str(file),
        "scopes": [
            {"kind": one.kind, "where": one.where, "former": one.former, "in_effect": _is_in_effect(name, one)}
            for one in (found.scopes if found is not None else ())
        ],
        "connections": use.connections,
        "sent_bytes": use.sent_bytes,
        "retransmitted_bytes": use.retransmitted_bytes,
    }


def _is_in_effect(name: str, scope: Scope) -> bool | None:
    """Whether the scope uses the control; ``None`` if only root may see it."""
    if scope.kind == "default":
        return _default() == name
    if scope.kind == "route":
        found = routes.find(routes.prefix(scope.where))
        return bool(found) and all(route.control == name for route in found)
    return cgroups.is_attached(name, Path(scope.where))


def _listed() -> dict[str, Any]:
    from anabranch import _engine

    listed: dict[str, Any] = json.loads(_engine.cc_list())
    return listed


def _shipped() -> dict[str, str]:
    """Names in the kernel, by the names with which controls ship."""
    return {one["name"]: one["kernel_name"] for one in _listed()["shipped"]}


def _ships_as(name: str) -> str:
    """The name with which a control ships, by its name in the kernel; the same name if it does not ship."""
    return {kernel_name: ships for ships, kernel_name in _shipped().items()}.get(name, name)


def _loaded() -> list[str]:
    return list(_listed()["loaded"] or ())


def _require_root(word: str, name: str) -> None:
    """Refuse without root.

    Raises:
        UserError: This process is another user's.
    """
    require_linux(f"cc {word}")
    if os.geteuid() != 0:
        raise UserError(f"cc {word} needs root", hint=f"sudo anabranch cc {word} {name}")


def _known(given: str) -> str | None:
    """The name in the kernel of a control that ships or is installed; ``None`` for another file.

    Raises:
        UserError: It is none of these.
    """
    shipped, listed = _shipped(), _listed()
    installed = {one.name: one for one in record.all_records()}
    if given in shipped:
        return shipped[given]
    if given in shipped.values() or given in installed:
        return given
    if Path(given).is_file():
        content = read_bytes(given, most=MAX_TEXT_BYTES)
        return next((one.name for one in installed.values() if one.is_copy(content)), None)
    if given in listed["available"] and given not in (listed["loaded"] or ()):
        raise UserError(
            f"`{given}` is the kernel's own control, which needs no installation",
            hint=f"sysctl -w net.ipv4.tcp_congestion_control={given}",
        )
    raise UserError(f'no control "{given}" ships, and there is no such file', hint=nearest(given, shipped))


def _check_free(name: str, wanted: Sequence[Scope]) -> None:
    """Refuse a scope of another installed control.

    Raises:
        UserError: It has one.
    """
    for other in record.all_records():
        for scope in wanted:
            if other.name != name and other.scope(scope) is not None:
                raise UserError(
                    f"{' '.join(scope.option)}: `{other.name}` is installed there",
                    hint=f"anabranch cc remove {other.name}",
                )


def _install_known(name: str, say: Say) -> Record:
    """Record and load a control that ships or is installed, unless it is loaded.

    Raises:
        UserError: It does not compile, or the kernel refuses it.
    """
    found = record.find(name)
    made = found or Record(name, _ships_as(name))
    made.write()
    if name not in _loaded():
        try:
            _load(made.given, is_file=made.is_file, say=say)
        except UserError:
            if found is None:
                _forget(made)
            raise
    return made


def _install_file(given: str, wanted: Sequence[Scope], say: Say) -> Record:
    """Record, copy and load a control from a file.

    Raises:
        UserError: It does not compile, the kernel refuses it, or another control has its name or a scope.
    """
    content = read_bytes(given, most=MAX_TEXT_BYTES)
    made = None
    name = _name_in(content)
    if name is not None:
        if record.find(name) is not None and (_ships_as(name) != name or record.copy_of(name).exists()):
            raise UserError(f"{given}: another version of `{name}` is installed", hint=f"anabranch cc remove {name}")
        _check_free(name, wanted)
        made = _copied(name, content)
    try:
        loaded = _load(given, is_file=True, say=say)
    except UserError:
        if made is not None:
            _forget(made)
        raise
    if made is not None and made.name != loaded:
        _forget(made)
        made = None
    if made is None:
        try:
            _check_free(loaded, wanted)
        except UserError:
            _unload(loaded)
            raise
        made = _copied(loaded, content)
    return made


def _name_in(content: bytes) -> str | None:
    """The name of a control in its source; ``None`` if only the compiler knows it."""
    found = set(_NAMED.findall(content))
    return found.pop().decode() if len(found) == 1 else None


def _forget(made: Record) -> None:
    """Remove a record and the copy of its file."""
    record.copy_of(made.name).unlink(missing_ok=True)
    made.file.unlink(missing_ok=True)
    record.remove_empty()


def _load(what: str, *, is_file: bool, say: Say) -> str:
    """Load a control; returns its name in the kernel.

    Raises:
        UserError: It does not compile, or the kernel refuses it.
    """
    from anabranch import _engine

    try:
        loaded = json.loads(_engine.cc_load(what, is_file))
    except _engine.ControlError as error:
        text, _, hint = str(error).partition("; ")
        raise UserError(text, hint=hint or None) from None
    if loaded["mounted"] is not None:
        say(f"mounted a BPF file system at {loaded['mounted']}: controls are kept in it")
    return str(loaded["name"])


def _unload(name: str) -> None:
    from anabranch import _engine

    try:
        _engine.cc_unload(name)
    except _engine.ControlError as error:
        raise RunFailedError(str(error)) from None


def _copied(name: str, content: bytes) -> Record:
    """The record of a control from a file, which is copied: the machine's next start must not depend on the file."""
    copy = record.copy_of(name)
    made = Record(name, str(copy))
    made.write()
    write_whole(copy, content)
    return made


def _adopt(made: Record, scope: Scope) -> Record:
    """Note the scope's former control, then make the new one the scope's.

    Raises:
        RunFailedError: The kernel refuses it.
    """
    made = made.with_scope(_with_former(made, scope))
    made.write()
    try:
        if scope.kind == "default":
            _DEFAULT.write_text(made.name)
        elif scope.kind == "route":
            for route in routes.required(routes.prefix(scope.where)):
                routes.change(route, made.name)
        else:
            cgroups.attach(made.name, Path(scope.where))
    except OSError as error:
        raise RunFailedError(
            f"{scope.shown()}: the kernel refuses `{made.name}`: {error.strerror}; "
            f"to undo it: anabranch cc remove {made.name}"
        ) from None
    return made


def _with_former(made: Record, scope: Scope) -> Scope:
    """The scope with the controls that it has now, or that it had before this control was installed there."""
    known = made.scope(scope) or scope
    if scope.kind == "default":
        former = _default()
        return replace(scope, former=known.former if former == made.name else former)
    if scope.kind == "route":
        there = {one.key: one.control for one in routes.find(routes.prefix(scope.where))}
        formers = dict(known.formers)
        formers |= {key: formers.get(key, known.former) if now == made.name else now for key, now in there.items()}
        return replace(scope, former=next(iter(formers.values()), None), formers=tuple(formers.items()))
    return scope


def _warning(name: str) -> str | None:
    """A measured harm of a control with this machine's settings."""
    if name != "ab_cubicplus" or not _SACK.exists() or _SACK.read_text().strip() == "0":
        return None
    return (
        "net.ipv4.tcp_sack is on: with SACK, CUBIC fills a path that reorders, and Cubic+ had a sixth less goodput "
        "there (measured; the guide of Cubic+ has the rows)"
    )


def _keep(made: Record, said: str, say: Say) -> None:
    """Write the unit, or say what to type after a start of the machine."""
    arguments = [made.given]
    arguments += [word for one in made.scopes for word in one.option]
    if unit.is_running():
        unit.write(made.name, arguments)
        say(f"{said}; {unit.name(made.name)} does it again at each start")
    else:
        say(f"{said}. systemd does not run here, so it ends at a restart: then type")
        say(f"  {shlex.join(['anabranch', 'cc', 'install', *arguments])}")


def _default() -> str:
    return _DEFAULT.read_text().strip()


def _restore(name: str, scope: Scope, say: Say) -> None:
    """Restore the former control of a scope, unless somebody has chosen another since."""
    if scope.kind == "default":
        if _default() == name:
            _restore_default(scope.former, say)
    elif scope.kind == "route":
        network = routes.prefix(scope.where)
        key = routes.ambiguous(network)
        if key is not None:
            say(f"route {network}: several routes have {key}, so they are left as they are: ip route show {network}")
            return
        for route in routes.find(network):
            if route.control == name:
                _restore_route(route, dict(scope.formers).get(route.key, scope.former), say)
    else:
        cgroups.detach(name, scope.where)


def _restore_default(former: str | None, say: Say) -> None:
    for one in (former, *_FALLBACKS):
        if one is not None:
            try:
                _DEFAULT.write_text(one)
            except OSError as error:
                say(f"the kernel refuses {one} as default: {error.strerror}")
                continue
            say(f"the default is {one} again" if one == former else f"the default is {one}")
            return


def _restore_route(route: routes.Route, former: str | None, say: Say) -> None:
    try:
        routes.change(route, former)
    except OSError as error:
        say(f"route {route.prefix}: its former control, {former}, is refused ({error.strerror}); it has none now")
        routes.change(route, None)
