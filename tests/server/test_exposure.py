from __future__ import annotations

import pytest

from fuseboard_server.exits import CommandError, Exit
from fuseboard_server.exposure import Doors, check_exposure

HERE = "127.0.0.1"


@pytest.mark.parametrize(
    ("doors", "words"),
    [
        (Doors("0.0.0.0", HERE), ["--token", "--read-token", "--insecure"]),
        (Doors("0.0.0.0", HERE, token="t"), ["--read-token"]),
        (Doors("0.0.0.0", HERE, read_token="t"), ["--token-file"]),
        (Doors("0.0.0.0", "0.0.0.0", "t", "r"), ["--ui-host 127.0.0.1", "login"]),
        (Doors(HERE, "192.0.2.1"), ["192.0.2.1", "--ui-host", "--oidc-config"]),
        (Doors(HERE, "0.0.0.0", ui_flag="--host"), [" --host 127.0.0.1", "--trust-user-header"]),
        (Doors("0.0.0.0", "0.0.0.0", "t", has_login=True), ["--read-token"]),
    ],
    ids=str,
)
def test_what_anybody_could_do_is_refused_with_its_remedy(
    doors: Doors, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CommandError) as caught:
        check_exposure(doors, insecure=False)
    assert caught.value.exit_code == Exit.USAGE
    for word in words:
        assert word in caught.value.message
    check_exposure(doors, insecure=True)
    assert "without authentication" in capsys.readouterr().err


@pytest.mark.parametrize(
    "doors",
    [
        Doors(HERE, HERE),
        Doors("localhost", "::1"),
        Doors("0.0.0.0", HERE, "t", "r"),
        Doors("192.0.2.1", "localhost", "t", "r"),
        Doors("0.0.0.0", "0.0.0.0", "t", "r", has_login=True),
        Doors(HERE, "192.0.2.1", has_login=True),
    ],
    ids=str,
)
def test_doors_that_are_shut_are_no_business_of_anybodys(
    doors: Doors, capsys: pytest.CaptureFixture[str]
) -> None:
    check_exposure(doors, insecure=False)
    assert capsys.readouterr().err == ""


def test_a_door_with_a_login_is_not_among_the_open_ones() -> None:
    assert "dashboard" in " ".join(Doors("0.0.0.0", "0.0.0.0").open_ones())
    assert "dashboard" not in " ".join(Doors("0.0.0.0", "0.0.0.0", has_login=True).open_ones())


def test_tokens_are_not_in_what_is_printed_of_doors() -> None:
    assert "s3cret" not in repr(Doors(HERE, HERE, "s3cret", "s3cret"))
