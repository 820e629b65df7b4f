"""The dashboard in a browser: textual-serve on loopback, for whoever has its address.

guard   who may come in: the address has a secret, and the page asks from nowhere else
tab     one browser tab: a `draftsman dashboard` of its own, which does not outlive it
server  the page, its files, and a websocket for each tab
"""
