"""Parameter descriptions out of docstrings in the three usual styles."""

import pytest

from dragoman.schema.docstring import read_docstring

GOOGLE = """Build the app.

    Works on any machine.

    Args:
        project_dir (str): Where it is,
            absolutely.
        arch: The processor
        *rest: not much

        **more: even less

    Returns:
        The exit code.
    """
NUMPY = """
    Build the app.

    Works on any machine.

    Parameters
    ----------
    project_dir : str
        Where it is,
        absolutely.
    arch, cpu : {"arm64", "x86_64"}, optional
        The processor

    Returns
    -------
    int
        The exit code.
    """
SPHINX = """Build the app.

    Works on any machine.

    :param str project_dir: Where it is,
        absolutely.
    :type project_dir: str
    :param arch: The processor
    :returns: The exit code.
    """


def test_google():
    text, found = read_docstring(GOOGLE)
    assert found == {
        "project_dir": "Where it is, absolutely.",
        "arch": "The processor",
        "rest": "not much",
        "more": "even less",
    }
    assert text == "Build the app.\n\nWorks on any machine.\n\nReturns:\n    The exit code."


def test_numpy():
    text, found = read_docstring(NUMPY)
    assert found == {
        "project_dir": "Where it is, absolutely.",
        "arch": "The processor",
        "cpu": "The processor",
    }
    assert text.startswith("Build the app.\n\nWorks on any machine.\n\nReturns\n-------")


def test_sphinx():
    text, found = read_docstring(SPHINX)
    assert found == {"project_dir": "Where it is, absolutely.", "arch": "The processor"}
    assert text == "Build the app.\n\nWorks on any machine."


@pytest.mark.parametrize("doc", [None, "", "   \n  ", "Args:", "Args:\n", "\n\nArgs:\n\n"])
def test_nothing_to_read(doc):
    assert read_docstring(doc) == ("", {})


@pytest.mark.parametrize(
    "doc",
    [
        "One line.",
        "Parameters are hard",
        "Takes these:\n    a: first\nand more",
        "a: not an entry, there is no section",
        "Example\n-------\n    x: y",
    ],
)
def test_text_that_only_looks_like_a_section_is_kept(doc):
    assert read_docstring(doc) == (doc, {})


def test_a_section_at_the_end_without_a_blank_line():
    assert read_docstring("Do.\nArgs:\n  a: one\n  b: two") == ("Do.", {"a": "one", "b": "two"})


def test_colons_and_parentheses_in_descriptions():
    doc = "Do.\n\nArgs:\n    a (dict[str, int], optional): as in http://x: {k: v} (see b)\n"
    assert read_docstring(doc)[1] == {"a": "as in http://x: {k: v} (see b)"}
