"""The page of settings, generated from the one table that the program reads."""

from gateway.settings import Settings


def page() -> str:
    """Return docs/settings.md."""
    lines = [
        "# Settings",
        "",
        "Environment variables. This page is written by `python -m gateway.cli.settings_page`.",
        "",
        "| variable | default | meaning |",
        "|---|---|---|",
    ]
    for name, field in Settings.model_fields.items():
        default = "empty" if field.default in ("", None) else f"`{field.default}`"
        lines.append(f"| `PENNAME_{name.upper()}` | {default} | {field.description} |")
    lines += [
        "",
        "`PENNAME_CACHE` names the folder of converted models and word vectors; the default is",
        "`~/.cache/penname`, or `penname` in `XDG_CACHE_HOME`. It holds nothing personal and is made anew",
        "when it is missing.",
        "",
        "`OPENAI_API_KEY` and `OPENAI_BASE_URL` name the provider where there is no configuration file;",
        "in one, `os.environ/NAME` takes a key from any variable. `PENNAME_PPFT_KEYS` holds the bearer keys",
        "of `penname ppft serve` and `ask`, separated by commas.",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
