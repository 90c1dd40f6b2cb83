"""Manners: a bar that ends right, words for those who want more or none, options from a file, help, JSON, completion."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import shlex
import shutil
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason='pyarrow is missing: pip install "onlinevi[files]"')

import onlinevi as ovi
from onlinevi.adapters.cli import command_parser, main, progress
from onlinevi.data import samples
from onlinevi.runs import metrics_table
from onlinevi.runs.measured import metrics_of


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Rows in one block of 60 bytes each, so that a file of any length is read at once and told row by row."""
    path = tmp_path / "t.csv"
    path.write_text("a,b,y\n" + "".join(f"{i % 7},{i % 3},{'no' if i % 7 > 3 else 'yes'}\n" for i in range(20_000)))
    return path


def on_a_terminal(*arguments: object, columns: int = 110) -> str:
    """What a person sees: both streams of a call on a terminal of so many columns.

    A process of its own, and no fork of this one, which may have threads of others' making.
    """
    terminal, end = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    call = [sys.executable, "-m", "onlinevi", *map(str, arguments)]
    child = subprocess.Popen(call, stdin=end, stdout=end, stderr=end, start_new_session=True)
    os.close(end)
    seen = b""
    try:
        while data := os.read(terminal, 65536):
            seen += data
    except OSError:  # how the end of a terminal is told
        pass
    child.wait()
    os.close(terminal)
    return seen.decode()


@pytest.mark.compiled
@pytest.mark.parametrize(("rows", "count"), [(None, 20_000), ("10000:19000", 9_000), (":8192", 8_192), ("12000:", 8_000)])
def test_the_bar_ends_at_100_whatever_part_is_read(table: Path, rows: str | None, count: int) -> None:
    chosen = [] if rows is None else ["--rows", rows]
    seen = on_a_terminal("run", table, "--target", "y", "--rule", "svb", "--no-hindsight", *chosen)
    shares = [int(share) for share in re.findall(r"\r *(\d+) % ", seen)]
    assert shares == sorted(shares)
    assert shares[-1] == 100
    last = re.findall(r"\r100 % ━{24} ([\d,]+) rows, [\d,]+ a second, average loss [\d.]+, \d+:\d\d in all", seen)
    assert last == [f"{count:,}"]
    drawn = [line for line in re.split(r"\r|\n", seen) if " % ━" in line or " % ─" in line]
    assert max(len(line.removesuffix("\x1b[K")) for line in drawn) < 110
    if count > 2 * 8_192:
        assert shares[0] < 60, "what is read ahead is not yet done"


@pytest.mark.parametrize("columns", [200, 64, 50, 40, 20])
def test_what_a_bar_says_fits_the_terminal(table: Path, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "width", lambda: columns)
    model = ovi.fit({"a": [1.0, 2.0] * 15, "y": ["no", "yes"] * 15}, target="y", rule="svb")
    ticker = progress.Ticker(str(table), 0)
    ticker._paces[0] = (ticker._paces[0][0] - 10.0, 0)  # ten seconds ago
    line = ticker._told(model.job, "", "1:02:03 left", 0.5)
    assert len(line) < columns or line == " 50 % 30 rows"
    assert line.startswith(" 50 % ")
    assert line.endswith("1:02:03 left") == (24 <= columns < 200), "of all but the rows it is told longest"
    assert ("at most" in line, "━" in line, "a second" in line) == (columns > 100, columns > 100, columns > 60)


@pytest.mark.parametrize("widest", [200, 60, 40, 10])
def test_metrics_fit_the_terminal_and_none_is_left_out(widest: int) -> None:
    model = ovi.fit({"a": [1.0, 2.0] * 40, "y": ["no", "yes"] * 40}, target="y", rule="svb", window=50)
    metrics = metrics_of(model.job)
    assert metrics is not None
    lines = metrics_table(metrics, widest)
    assert max(map(len, lines)) <= max(widest, 17 + 2 + 17)
    told = " ".join(lines)
    assert all(told.count(whose) == 1 for whose in ("all rows", "last 50", "always the same", "same as last time"))
    assert told.count("accuracy") == 2 * {200: 1, 60: 2, 40: 3, 10: 4}[widest], "and balanced accuracy"


def test_no_bar_where_it_is_to_be_quiet_and_lines_where_a_log_asks(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = ["run", str(table), "--target", "y", "--rule", "svb", "--no-hindsight", "--rows", ":500"]
    assert "\x1b[K" not in on_a_terminal(*call, "--quiet")
    assert main([*call, "-q"]) == 0
    quiet = capsys.readouterr()
    assert quiet.err == ""
    assert "Every one of 500 rows" in quiet.out
    assert main([*call, "-v"]) == 0
    said = capsys.readouterr().err
    assert "taken for" in said
    assert re.search(r"^onlinevi \S+, Python 3\.\d+", said, re.MULTILINE)
    assert re.search(r"^100 % 500 rows", said, re.MULTILINE)
    assert "\r" not in said
    with pytest.raises(SystemExit):
        main([*call, "-q", "-v"])


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (["rn"], "(did you mean 'run'?)"),
        (["run", "x.csv", "--taget", "y"], "no such option: --taget (did you mean '--target'?)"),
        (["run", "x.csv", "--target", "y", "--task", "class"], "(did you mean 'classes'?)"),
        (["data", "lst"], "(did you mean 'list'?)"),
        (["run", "t.csv", "--kinds", "a=catgory"], "(did you mean 'category'?)"),
        (["--json", "info", "m.ovi"], "let it stand behind the command's name"),
    ],
)
def test_a_wrong_call_is_refused_in_one_line_with_what_may_be_meant(
    call: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(call)
    assert stopped.value.code == 2
    message = capsys.readouterr().err
    assert says in message
    assert message.count("\n") == 1


@pytest.mark.parametrize(
    ("chosen", "says"),
    [
        (["--target", "Y"], "no column is called 'Y' (did you mean 'y'?)"),
        (["--target", "y", "--drop", "bb"], "(did you mean 'b'?)"),
        (["--target", "y", "--rule", "ngvy"], "(did you mean 'ngvi'?)"),
        (["--target", "y", "--rule", "ngvi(flor=0.1)"], "(did you mean 'floor'?)"),
        (["--target", "y", "--rule", "svb", "--loss", "hing"], "(did you mean 'hinge'?)"),
        (["--target", "y", "--rule", "implicit(stp=1)"], "no setting 'stp'; it takes rate\n"),
        (["--target", "y", "--predictions", "a/b.csv", "--from", "modl.ovi"], "modl.ovi"),
    ],
)
def test_names_that_are_not_known_are_asked_back(
    chosen: list[str], says: str, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(table), *chosen]) == 2
    assert says in capsys.readouterr().err


def test_a_file_that_is_not_there_is_asked_back(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(table.with_name("tt.csv")), "--target", "y"]) == 2
    assert "no such file or folder (did you mean 't.csv'?)" in capsys.readouterr().err


def test_of_a_value_too_large_to_square_the_column_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b,y\n1,2,3\n2,1e300,4\n3,4,5\n")
    assert main(["run", str(path), "--target", "y", "--task", "numbers", "--rule", "implicit", "--quiet"]) == 2
    assert "row 1, column 'b': beyond ±1e+145 sums of squares overflow; change its unit; it reads '1e+300'" in (
        capsys.readouterr().err
    )


def test_no_command_at_all_shows_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Begin with run" in shown.err


def test_what_a_newcomer_reads_of_columns_and_of_the_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "t.csv", tmp_path / "my out"
    name = "turnover of the last fiscal year in euro"
    path.write_text(f"{name},b,y\n" + "".join(f"{k % 5},inf,{'no' if k % 5 > 2 else 'yes'}\n" for k in range(30)))
    call = ["run", str(path), "--target", "y", "--rule", "svb", "--drop", "b", "--out", str(out), "--no-hindsight"]
    assert main([*call, "--look", "30"]) == 0
    said = capsys.readouterr().err
    assert "\nby the first 30 rows:\n  column " in said, "there may be more"
    assert f"\n  {name[:31]}… number " in said
    results = json.loads((out / "run.json").read_text())
    assert shlex.split(results["head"]["command"]) == ["onlinevi", *call, "--look", "30"]
    assert main([*call, "--overwrite"]) == 0
    assert "by the first" not in capsys.readouterr().err


class TestConfig:
    """``--config``: options from a TOML file."""

    def call(self, folder: Path, text: str, *words: object, command: str = "run") -> int:
        path = folder / "c.toml"
        path.write_text(text)
        return main([command, "--config", str(path), *map(str, words)])

    def test_what_it_says_is_as_if_it_stood_in_the_call(
        self, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        text = f"""
            target = "y"
            drop = ["b"]
            [run]
            file = "{table}"
            rows = ":300"
            no_hindsight = true
            rule = "svb"
            json = true
            kinds = {{ a = "category" }}
            [compare]
            rules = "svb"
        """
        assert self.call(tmp_path, text) == 0
        by_file = json.loads(capsys.readouterr().out)
        words = ["--target", "y", "--drop", "b", "--rows", ":300", "--no-hindsight", "--rule", "svb", "--json"]
        assert main(["run", str(table), *words, "--kinds", "a=category"]) == 0
        by_words = json.loads(capsys.readouterr().out)
        assert {**by_file, "seconds": 0, "rows_per_second": 0} == {**by_words, "seconds": 0, "rows_per_second": 0}
        assert by_file["events"] == 300

    def test_the_call_wins_over_it(self, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        text = f'target = "a"\nfile = "nowhere.csv"\nrows = ":9"\nresume = true\nout = "{tmp_path / "out"}"\nrule = "svb"'
        call = (table, "--target", "y", "--rows", ":20", "--overwrite", "--json")
        assert self.call(tmp_path, text, *call) == 0
        facts = json.loads(capsys.readouterr().out)
        assert (facts["events"], facts["target"]) == (20, "y")
        assert facts["wrote"][0] == str(tmp_path / "out" / "run.json"), "what the call leaves open is the file's"
        assert (
            self.call(
                tmp_path, 'import = ["nowhere"]', table, "--target", "y", "--import", "math", "--rows", ":9", "--rule", "svb"
            )
            == 0
        )

    def test_what_is_told_by_its_place_may_be_there_in_part(
        self, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        model = tmp_path / "m.ovi"
        assert main(["run", str(table), "--target", "y", "--rule", "svb", "--rows", ":50", "--checkpoint", str(model)]) == 0
        capsys.readouterr()
        text = f'model = "nowhere.ovi"\nfile = "{table}"\nbad-rows = "skip"'
        assert self.call(tmp_path, text, model, command="predict") == 0
        assert capsys.readouterr().out.startswith("row,prediction,probability,set\n")

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ('tagret = "y"', "has no option 'tagret' (did you mean 'target'?)"),
            ("resume = 3", "needs true or false"),
            ("target = true", "needs a value"),
            ("target =", "is no TOML"),
        ],
    )
    def test_what_it_cannot_say_is_refused(
        self, text: str, says: str, table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert self.call(tmp_path, text, table) == 2
        assert says in capsys.readouterr().err
        assert main(["run", str(table), "--config", str(tmp_path / "none.toml")]) == 2
        assert "none.toml: No such file" in capsys.readouterr().err


def test_help_explains_six_options_and_names_all_others(capsys: pytest.CaptureFixture[str]) -> None:
    shown = {}
    for option in ("--help", "--help-all"):
        with pytest.raises(SystemExit) as stopped:
            main(["run", option])
        assert stopped.value.code == 0
        shown[option] = capsys.readouterr().out
    short, whole = shown.values()
    assert len(re.findall(r"^  --\w", short, re.MULTILINE)) == 6
    assert len(short.splitlines()) < 55 < len(whole.splitlines())
    parser = command_parser().commands["run"]
    for action in dict.fromkeys(parser.options.values()):
        assert any(word in short for word in action.option_strings), action.option_strings
        assert action.option_strings[-1] in whole


def test_every_command_gives_its_result_as_one_json_document(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = ["--target", "y", "--rows", ":200"]
    calls = {
        "run": ["t.csv", *rows, "--rule", "svb", "--out", "o"],
        "look": ["t.csv", *rows],
        "compare": ["t.csv", *rows, "--rules", "svb,oga"],
        "predict": ["o/model.ovi", "t.csv"],
        "info": ["o/model.ovi"],
        "merge": ["o/model.ovi", "b.ovi", "-o", "both.ovi"],
        "report": ["o"],
        "bounds": ["--T", "100", "--dim", "2", "--rule", "svb"],
        "data": ["--write", "iris.csv"],
        "warm": ["--task", "classes"],
        "completion": ["bash"],
    }
    others = {"reproduce", "serve", "value"}
    assert set(calls) == set(command_parser().commands) - others, "they have tests of their own"
    for command, words in calls.items():
        if command == "merge":
            shard = ["--target", "y", "--rows", "200:400", "--rule", "svb", "--prepare-like", "o/model.ovi"]
            assert main(["run", "t.csv", *shard, "--checkpoint", "b.ovi"]) == 0
            capsys.readouterr()
        assert main([command, *words, "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert isinstance(document, dict)
        if command == "predict":
            assert len(document["predictions"]) == 20_000
            assert set(document["predictions"][0]) == {"row", "prediction", "probability", "set"}
            assert document["bad_rows"] == 0
    for action in (["samples"], ["list"], ["fetch", "toy"]):
        assert main(["data", *action, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)


COMPLETE = """
source <("$0" -m onlinevi completion bash)
complete_words() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _onlinevi; echo "${COMPREPLY[@]}"; }
complete_words onlinevi ru
complete_words onlinevi run t.csv --targ
complete_words onlinevi run t.csv --task ""
complete_words onlinevi data fe
complete_words onlinevi run t.csv --rule sv
complete_words onlinevi data --write br
complete_words onlinevi data ""
complete_words onlinevi info my
echo "${#COMPREPLY[@]}"
"""


def test_a_shell_completes_commands_options_and_choices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "my model.ovi").touch()
    done = subprocess.run(["bash", "-c", COMPLETE, sys.executable], capture_output=True, text=True, check=True, cwd=tmp_path)
    found = ["run", "--target", "classes numbers counts quantile", "fetch", "sva svb", "breast.csv"]
    assert done.stdout.splitlines() == [*found, "samples list fetch path", "my model.ovi", "1"]
    for shell in ("bash", "zsh", "fish"):
        assert main(["completion", shell]) == 0
        script = capsys.readouterr().out
        assert all(name in script for name in ("compare", "hash-bits", "classes numbers counts quantile"))
        if shutil.which(shell):
            subprocess.run([shell, "-n"], input=script, text=True, check=True)


def test_samples_are_written_and_nothing_else_is_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, sample in samples.SAMPLES.items():
        path = samples.write(tmp_path / "new" / f"{name}.csv")
        written = path.read_text()
        assert sample.target in written.splitlines()[0].split(",")
        assert samples.write(path).read_text() == written, "the same each time"
    path.write_text("mine")
    with pytest.raises(ValueError, match="with another content"):
        samples.write(path)
    assert main(["data", "--write", "iri.csv"]) == 2
    assert "(did you mean 'iris.csv'?)" in capsys.readouterr().err
