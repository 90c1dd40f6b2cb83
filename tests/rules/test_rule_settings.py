"""Rules with their settings as text: what a command, an estimator and a file of settings understand."""

from __future__ import annotations

import pytest
from helpers.catalogue import name

import onlinevi as ovi
from onlinevi.adapters.cli import main
from onlinevi.learners import rule_of
from onlinevi.runs import Settings


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("ngvi", ovi.NGVI()),
        ("sva", ovi.SVA(ovi.PerSqrt(1.0))),
        ("sva(rate=0.5)", ovi.SVA(0.5)),
        ("ngvi(floor=0.1)", ovi.NGVI(floor=0.1)),
        ("ngvi(step=2, rate=None)", ovi.NGVI(2.0)),
        ("ngvi(step=PaperSVB(1),rate=100,parameters=scale)", ovi.NGVI(ovi.PaperSVB(1.0), 100.0, parameters="scale")),
        ("oga-el(rate=Adaptive())", ovi.OGAEL(ovi.Adaptive())),
        ("onlinevi.rules:SVB(rate=PerStep(3))", ovi.SVB(ovi.PerStep(3.0))),
    ],
    ids=name,
)
def test_a_rule_as_text(text: str, rule: ovi.Rule) -> None:
    made = rule_of(text)
    assert (type(made), made) == (type(rule), rule)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("ngvi(0.1)", "settings are name=value"),
        ("ngvi(floor=0.1", "settings are name=value"),
        ("ngvi(floor=0.1))", "settings are name=value"),
        ("ngvi(floor=open('x'))", "settings are name=value"),
        ("ngvi(floor=0.1).step", "settings are name=value"),
        ("ngvi(roof=0.1)", r"no setting 'roof'; it takes step, rate, floor, parameters"),
        ("ngvi(floor=2)", "at most 1"),
        ("ngvi(floor=low)", "of the wrong kind"),
        ("ngwi(floor=0.1)", "needs one of"),
    ],
)
def test_a_wrong_spelling_is_answered_before_the_first_row(text: str, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        rule_of(text)
    with pytest.raises(ValueError, match=match):
        Settings("label", rule=text)


def test_the_command_line_says_so_too(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "rows.csv").write_text("a,label\n1,2\n")
    for command in ("run", "compare"):
        option = "--rule" if command == "run" else "--rules"
        assert main([command, str(tmp_path / "rows.csv"), "--target", "label", option, "ngvi(step=1,roof=0.1)"]) == 2
        assert "no setting 'roof'" in capsys.readouterr().err
