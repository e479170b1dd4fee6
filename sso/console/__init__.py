"""The admin console, /console: pages on which administrators use the operations of the management API.

``sections.py`` lists the sections. Each section has a package with its pages (``<section>/pages.py``) and a folder of
templates (``web/templates/console/<section>``). Pages call the handlers of the management API in this process
(``visit.py``), so the console has no rights and no operations of its own.
"""
