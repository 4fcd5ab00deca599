"""The OpenAPI 3.1 document, derived from the table of routes and the schemas that judge requests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from lbaas_scheduler.api.bodies import MAX_BULK
from lbaas_scheduler.api.operations import Operation

Document = dict[str, Any]

_VARIABLE = re.compile(r"{(\w+)}")
_REQUEST_ID = {"X-OpenStack-Request-ID": {"description": "What the log calls this request", "schema": {"type": "string"}}}
_TOKEN = {"type": "apiKey", "in": "header", "name": "X-Auth-Token", "description": "A token of Keystone"}

_ERRORS = {
    400: "The request is wrong; the message says what would be right",
    401: "No valid token",
    403: "The policy does not allow it",
    404: "It does not exist, or belongs to somebody else",
    409: "Correct in itself, but not in the present state",
    413: "The body is too large",
    415: "The body is no JSON",
    502: "A vendor's code failed",
    503: "Nothing can take it, or something that is needed is away; try again",
}

ERROR: Document = {
    "type": "object",
    "properties": {
        "NeutronError": {
            "type": "object",
            "properties": {name: {"type": "string"} for name in ("type", "message", "detail")},
            "required": ["type", "message", "detail"],
        }
    },
    "required": ["NeutronError"],
}


def document(routes: Mapping[str, Mapping[str, Operation]], keystone: bool = False) -> Document:
    """:param keystone: whether callers need a token."""
    schemas: Document = {"Error": ERROR}
    paths = {
        path: {method.lower(): _operation(path, method, it, routes, schemas, keystone) for method, it in methods.items()}
        for path, methods in routes.items()
    }
    tags = sorted({operation.tag for methods in routes.values() for operation in methods.values()})
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "LBaaS scheduler",
            "version": version("lbaas-scheduler"),
            "description": "LBaaS v1 for tenants; devices, agents, service types and quotas for operators.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "tags": [{"name": tag} for tag in tags],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": {str(status): _error(text) for status, text in _ERRORS.items()},
            **({"securitySchemes": {"token": _TOKEN}} if keystone else {}),
        },
    }


def _operation(
    path: str,
    method: str,
    operation: Operation,
    routes: Mapping[str, Mapping[str, Operation]],
    schemas: Document,
    keystone: bool,
) -> Document:
    described: Document = {
        "operationId": _id(path, method),
        "summary": operation.summary,
        "tags": [operation.tag],
        "parameters": _parameters(path, operation),
        "responses": {
            str(operation.status): _success(path, method, operation, routes, schemas),
            **{str(status): {"$ref": f"#/components/responses/{status}"} for status in _failures(path, method, operation)},
            **{str(status): _also(operation, schema) for status, schema in operation.also.items()},
        },
    }
    if operation.takes is not None:
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": _body(operation, schemas)}}}
    if keystone and operation.rule is not None:
        described["security"] = [{"token": []}]
    return described


def _body(operation: Operation, schemas: Document) -> Document:
    one = _hoisted(operation.takes or {}, schemas)
    if not operation.bulk:
        return _enveloped(operation.envelope, one)
    many = {"type": "array", "minItems": 1, "maxItems": MAX_BULK, "items": one}
    return {"anyOf": [_enveloped(operation.envelope, one), _enveloped(operation.plural, many)]}


def _enveloped(name: str, schema: Document) -> Document:
    return {"type": "object", "properties": {name: schema}, "required": [name], "additionalProperties": False}


def _id(path: str, method: str) -> str:
    words = re.findall(r"[a-z]+", path.removeprefix("/v2.0").lower())
    return "_".join([method.lower(), *(words or ["versions" if path == "/" else "collections"])])


def _parameters(path: str, operation: Operation) -> list[Document]:
    in_path = [{"name": name, "in": "path", "required": True, "schema": operation.ids} for name in _VARIABLE.findall(path)]
    return [*in_path, *(_in_query(name, schema) for name, schema in operation.query.items())]


def _in_query(name: str, schema: Mapping[str, Any]) -> Document:
    return {"name": name, "in": "query", "schema": dict(schema), "style": "form", "explode": True}


def _success(
    path: str, method: str, operation: Operation, routes: Mapping[str, Mapping[str, Operation]], schemas: Document
) -> Document:
    answer: Document = {"description": operation.summary, "headers": _REQUEST_ID}
    if operation.gives is not None:
        answer["content"] = {operation.media_type: {"schema": _hoisted(operation.gives, schemas)}}
    item = f"{path}/{{id}}"
    if method == "POST" and item in routes:
        above = {name: f"$request.path.{name}" for name in _VARIABLE.findall(path)}
        found = {**above, "id": f"$response.body#/{operation.envelope}/id"}
        answer["links"] = {_id(item, verb): {"operationId": _id(item, verb), "parameters": found} for verb in routes[item]}
    return answer


def _also(operation: Operation, schema: Mapping[str, Any]) -> Document:
    content = {operation.media_type: {"schema": dict(schema)}}
    return {"description": operation.summary, "headers": _REQUEST_ID, "content": content}


def _failures(path: str, method: str, operation: Operation) -> list[int]:
    """What the operation may answer instead."""
    statuses = {400, *operation.may_fail}
    if operation.rule is not None:
        statuses |= {401, 403, 503}
    if _VARIABLE.search(path) or "marker" in operation.query:
        statuses |= {404}
    if method in ("POST", "PUT", "DELETE"):
        statuses |= {404, 409}
    if operation.takes is not None:
        statuses |= {413, 415}
    return sorted(statuses - {operation.status})


def _error(text: str) -> Document:
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {"description": text, "headers": _REQUEST_ID, "content": content}


def _hoisted(schema: Any, schemas: Document) -> Any:
    """The schema with every part that has a title replaced by a reference to it among the components."""
    if isinstance(schema, list | tuple):
        return [_hoisted(item, schemas) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    title = schema.get("title")
    if not isinstance(title, str):
        return {name: _hoisted(value, schemas) for name, value in schema.items()}
    if title not in schemas:
        schemas[title] = {name: _hoisted(value, schemas) for name, value in schema.items() if name != "title"}
    return {"$ref": f"#/components/schemas/{title}"}
