"""`make demo`: three hosts, a WAN between them, site.yml, training, new accumulation settings, teardown, a picture.

script.py     the demo from top to bottom
screen.py     what is shown meanwhile, on a terminal or in a log
measures.py   histories and recaps -> the figures of summary.json (pure)
report.py     table, picture, summary.json
"""
