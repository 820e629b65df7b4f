"""Dashboard in a browser: textual-serve on the loopback interface, with a secret URL.

guard        access checks of each request
browser_tab  a `draftsman dashboard` process for each browser tab
server       the page, its static files, and a WebSocket for each tab
"""
