"""The compiled engine (Rust, PyO3). Nothing outside this package needs it directly."""

from collections.abc import Callable, Sequence

class ScenarioError(ValueError):
    """Bad input. ``str(error)`` is the complete rendered message, with the source line and a caret.

    Attributes:
        file: Name of the scenario, as given.
        line: Line of the mistake, from 1; ``None`` where it has no place.
        column: Column of the mistake, from 1, in characters.
        message: The first line of the message, without the place.
        more: What else is wrong: the same four of each.
    """

    file: str
    line: int | None
    column: int | None
    message: str
    more: list[tuple[str, int | None, int | None, str]]

class LiveUnavailableError(RuntimeError):
    """This machine, or this build, does not let us run live: what is missing, and what would help."""

class UntraceableError(LiveUnavailableError):
    """The kernel's TCP cannot be traced, and was to be: a run without a trace could be made."""

class AqmError(ValueError):
    """A queue cannot be attached to a device, confirmed, read or detached, with the reason."""

class ControlError(ValueError):
    """An eBPF congestion control cannot be loaded or unloaded: what is missing or wrong."""

class CaptureError(ValueError):
    """A file that cannot be read as a capture: what is wrong, and what was expected."""

class ArrowTable:
    """A table that hands itself over through the Arrow C stream interface, without a copy."""

    def __init__(self, columns: list[tuple[str, str, bytes, bytes | None, list[str] | None]]) -> None: ...
    def columns(self) -> list[tuple[str, str, bytes, bytes | None, list[str] | None]]: ...
    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class PacketBatches:
    """Parts of the table ``packets``, made separately."""

    def __iter__(self) -> PacketBatches: ...
    def __next__(self) -> ArrowTable: ...

class Run:
    """The result of one run."""

    @property
    def summary_json(self) -> str: ...
    @property
    def depends(self) -> list[tuple[str, str]]: ...
    def table(self, name: str) -> ArrowTable: ...
    def packet_batches(self, rows: int, columns: list[str] | None = None) -> PacketBatches: ...
    def left_out_packets(self) -> int: ...
    def pcapng(self, link: str, direction: str | None = None) -> bytes: ...

def version() -> str: ...
def resolve(
    text: str,
    file: str,
    sets: list[str],
    seed: int | None,
    live: bool = False,
    *,
    untrusted: bool = False,
    controls: list[tuple[str, type]] = ...,
) -> str: ...
def synonyms() -> list[tuple[str, str]]: ...
def file_hash(path: str) -> str | None: ...
def exchange(one: str, other: str) -> bool: ...
def rename_new(one: str, other: str) -> bool: ...
def run(
    text: str,
    file: str,
    sets: list[str],
    *,
    seed: int | None = None,
    digest: bool = True,
    samples_ms: float | None = None,
    packets: bool = False,
    fast_path: bool = True,
    captures: tuple[list[tuple[str, str | None]], int] | None = None,
    untrusted: bool = False,
    controls: list[tuple[str, type]] = ...,
    progress: Callable[[float], None] | None = None,
) -> Run: ...
def check_many(
    jobs: Sequence[tuple[str, str, list[str], int | None]],
    *,
    threads: int | None = None,
    untrusted: bool = False,
    controls: list[tuple[str, type]] = ...,
) -> tuple[int, ScenarioError] | None: ...
def summarize_many(
    jobs: Sequence[tuple[str, str, list[str], int | None]],
    *,
    threads: int | None = None,
    digest: bool = True,
    untrusted: bool = False,
    controls: list[tuple[str, type]] = ...,
    progress: Callable[[int], None] | None = None,
) -> list[tuple[str, list[tuple[str, str]]]]: ...
def run_many(
    jobs: Sequence[tuple[str, str, list[str], int | None]],
    *,
    threads: int | None = None,
    digest: bool = True,
    samples_ms: float | None = None,
    untrusted: bool = False,
    controls: list[tuple[str, type]] = ...,
    progress: Callable[[int], None] | None = None,
) -> list[Run]: ...
def prepare_live() -> None: ...
def run_live(
    text: str,
    file: str,
    sets: list[str],
    *,
    seed: int | None = None,
    packets: bool = False,
    samples_ms: float | None = None,
    captures: tuple[list[tuple[str, str | None]], int] | None = None,
    limits: tuple[float, float, int] | None = None,
    shell: tuple[str, list[str]] | None = None,
    trace: tuple[str, bool] | None = None,
    untrusted: bool = False,
    virtual_time: bool = False,
    progress: Callable[[float], None] | None = None,
) -> Run: ...
def check_live(
    text: str,
    file: str,
    sets: list[str],
    seed: int | None = None,
    *,
    machine: bool = False,
    guest: bool = False,
) -> float: ...
def live_hosts(text: str, file: str, sets: list[str]) -> list[tuple[str, str, str, list[str] | None]]: ...
def live_program_hindrance(words: list[str]) -> tuple[str, str] | None: ...
def live_send_buffer(text: str, file: str, sets: list[str], seed: int | None = None) -> int: ...
def aqm_kinds() -> str: ...
def aqm_attach(
    device: str, kind: str, rate: str, options: str, confirm_within: int | None = None
) -> tuple[int | None, str]: ...
def aqm_confirm(device: str) -> bool: ...
def aqm_detach(device: str) -> None: ...
def aqm_status(device: str | None = None) -> str: ...
def run_script(
    text: str,
    file: str,
    *,
    stack: str | None = None,
    on_kernel: bool = False,
    runs: int = 1,
    most: int = 1,
    files: dict[str, str] | None = None,
) -> str: ...
def script_files(text: str) -> list[str]: ...
def cc_list() -> str: ...
def cc_load(what: str, is_file: bool) -> str: ...
def cc_unload(name: str) -> None: ...
def schema() -> str: ...
def gateway_classes(text: str, file: str) -> str: ...
def registry() -> str: ...
def results() -> str: ...
def library_file(name: str) -> str | None: ...
def diagnose(
    path: str,
    name: str,
    any_expansion: bool = False,
    progress: Callable[[float], None] | None = None,
    is_indented: bool = False,
) -> str: ...
def diagnose_segments(
    path: str, name: str, most: int, any_expansion: bool = False, progress: Callable[[float], None] | None = None
) -> tuple[str, bytes, int]: ...
def diagnose_terms() -> str: ...
def diagnose_trace(
    path: str,
    connections: list[int],
    frames: set[int],
    points: int,
    progress: Callable[[float], None] | None = None,
) -> str: ...
def annotate_capture(
    path: str,
    target: str,
    comments: dict[int, str],
    title: str,
    progress: Callable[[float], None] | None = None,
) -> None: ...
