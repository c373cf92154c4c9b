"""Results as one HTML file that opens offline: :func:`~oxlite.bench.report.html.page.render`.

``page`` puts the report together, ``drawing`` draws the charts, ``markup`` is the little language
both write in, ``style.css`` is how it looks.

Invariants: the file is complete: no script, no font, no picture and no address that a browser would
fetch, and its content security policy forbids them; text from outside is escaped in one place
(``markup``); a chart's geometry is in parts of its width and its words in the reader's own size, so
that it can be read on a telephone; every chart has a text alternative and its table.
"""
