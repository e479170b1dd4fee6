"""The admin console, /console: pages on which administrators use the operations of the management API.

``sections.py`` lists the sections. Each section has a module or package with its pages and a folder of templates
(``web/templates/console/<section>``). ``list_pages.py``, ``form_pages.py`` and ``editor_pages.py`` have the kinds of
pages. Pages call the handlers of the management API in this process (``visit.py``), so the console has no rights and no
operations of its own.
"""
