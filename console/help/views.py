"""The pages of help: the list of documents with a search, a document, and what a document shows."""

from __future__ import annotations

from django.http import FileResponse, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from console.help.documents import FILES, document, file_of, groups
from console.help.search import LONGEST, MOST, search
from rbac import services as rbac


@require_safe
def help_index(request: HttpRequest) -> HttpResponse:
    """All documents, or what was found in them for `?q=`."""
    rbac.require(request.user)
    text = request.GET.get("q", "").strip()[:LONGEST]
    context = {"section": "help", "q_help": text, "groups": groups(), "hits": search(text), "most": MOST}
    return render(request, "help/index.html", context)


@require_safe
def help_document(request: HttpRequest, name: str) -> HttpResponse:
    """One document."""
    rbac.require(request.user)
    found = document(name)
    html = SafeString(found.rendered.html)  # from markdown that is shipped, without HTML of its own
    text = request.GET.get("q", "").strip()[:LONGEST]
    return render(request, "help/document.html", {"section": "help", "document": found, "html": html, "q_help": text})


@require_safe
def help_file(request: HttpRequest, name: str) -> FileResponse:
    """A picture or an example file of the documents."""
    rbac.require(request.user)
    path = file_of(name)
    return FileResponse(path.open("rb"), content_type=FILES[path.suffix])
