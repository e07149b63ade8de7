"""Check the built site: every link within it leads somewhere, and nothing comes from elsewhere.

`python check_site.py _build/html`
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

RESOURCES = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src"}
NO_RESOURCES = {"canonical", "prev", "next", "index", "search", "author"}  # links of a page that nothing is loaded by


class Page(HTMLParser):
    """What a page links to, loads and offers as targets; pictures without alternative text."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.targets: set[str] = {""}
        self.without_text: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.targets |= {value for name in ("id", "name") if (value := given.get(name))}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"] or "")
        if (address := given.get(RESOURCES.get(tag, ""))) and given.get("rel") not in NO_RESOURCES:
            self.loaded.append(address)
        if tag == "img" and not given.get("alt") and "_thumb" not in (given.get("src") or ""):  # those have a title
            self.without_text.append(given.get("src") or "")


def main(folder: Path) -> int:
    """Print what is wrong; the exit code is 1 if anything is."""
    folder = folder.resolve()
    others = {*folder.glob("live-*.html"), *folder.glob("_static/**/*.html")}  # pages of models; of the theme
    pages = {path: Page(path) for path in sorted(folder.rglob("*.html")) if path not in others}
    faults = []
    for path, page in pages.items():
        here = path.relative_to(folder).as_posix()
        faults += [f"{here}: a picture without alternative text: {name}" for name in page.without_text]
        for address in page.loaded:
            if urlsplit(address).scheme in ("http", "https") or address.startswith("//"):
                faults.append(f"{here}: loads {address} from elsewhere")
        for address in [*page.links, *page.loaded]:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                faults.append(f"{here}: {address} leads nowhere")
            elif target in pages and unquote(parts.fragment) not in pages[target].targets:
                faults.append(f"{here}: {address} has no such place")
    print("\n".join(faults) or f"{len(pages)} pages: all links lead somewhere, nothing comes from elsewhere")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
