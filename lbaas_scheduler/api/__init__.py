"""The REST API: LBaaS v1 for tenants, and what operators need around it.

``routes`` is the one table of paths; each noun has a file of handlers; ``errors`` is the one table from errors to HTTP;
``openapi`` derives the document that describes all of it from the same schemas that judge requests.
"""
