"""html_page.py FILE SECTION... - reads a page of pt-query: every element closed in order, nothing loaded from
anywhere, no script or style but those that the policy has the hash of, the sections there, every row with as many cells as its table has columns. Exit 1: not so."""
import base64
import hashlib
import html.parser
import re
import sys

VOID = {"meta"}


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.sections, self.columns, self.cells, self.tables = [], [], 0, 0, 0

    def handle_starttag(self, tag, attrs):
        names = dict(attrs)
        assert "style" not in names and not [n for n in names if n.startswith("on")], (tag, attrs)
        assert not {"src", "srcset", "action", "data"} & set(names), (tag, attrs)
        assert names.get("href", "#").startswith("#"), (tag, attrs)
        if tag not in VOID:
            self.open.append(tag)
        if tag == "section":
            self.sections.append(names["id"])
        elif tag == "table":
            self.tables += 1
            self.columns = 0
        elif tag == "th":
            self.columns += 1
        elif tag == "tr":
            self.cells = 0
        elif tag == "td":
            self.cells += 1

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, (tag, self.getpos())
        if tag == "tr":
            assert self.cells in (0, self.columns), self.getpos()


page = Page()
text = open(sys.argv[1], encoding="utf-8").read()
page.feed(text)
page.close()
assert not page.open and page.tables, page.open
# Namespaces, and what libraries say of themselves.
for known in "www.w3.org/", "www.apache.org/", "d3js.org/d3-", "github.com/leeoniya/uPlot":
    text_left = re.sub(f"https?://{known}", "", locals().get("text_left", text))
assert "://" not in text_left, text_left[text_left.index("://") - 80:][:160]
assert set(sys.argv[2:]) <= set(page.sections), page.sections
policy = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', text).group(1)
assert "unsafe" not in policy and "default-src 'none'" in policy, policy
assert text.index("Content-Security-Policy") < text.index("<title>"), "the policy comes first"
for tag in "style", "script":
    inside = re.findall(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(inside[0].encode()).digest()).decode()
    assert len(inside) == 1 and f"{tag}-src 'sha256-{digest}'" in policy, (tag, len(inside), digest, policy)
