"""Holds what a server has answered against an OpenAPI 3.1 document.

    python3 openapi.py docs/openapi.yaml < exchanges

An exchange is a line of JSON: path (as the document has it), method, status,
headers (lower case), body, request (its body, if it has one), name.  For each
of them, and for each thing that is asked of the document itself, there is a
line of output, "ok" or "not ok", and what it is about.
"""

import json
import re
import sys
import warnings

import yaml
from jsonschema import Draft202012Validator

# how far a schema is from its $ref is none of our business
warnings.simplefilter("ignore", DeprecationWarning)

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")

# of every server
COMMON = ("server", "date", "content-type", "content-length", "connection",
          "transfer-encoding")

# What an object may have, and what it must: as much of OpenAPI 3.1 as is used.
OBJECTS = {
    "document": ("info servers tags paths components", "openapi info paths"),
    "info": ("title version license description", "title version"),
    "path": ("parameters servers " + " ".join(METHODS), ""),
    "operation": ("operationId summary description tags parameters requestBody"
                  " responses", "summary responses"),
    "parameter": ("name in required description schema", "name in schema"),
    "body": ("required content", "required content"),
    "response": ("description headers content", "description"),
    "header": ("description required schema", "schema"),
    "media": ("schema x-data", ""),
    "components": ("parameters headers responses schemas", ""),
}


class Document:
    def __init__(self, path):
        with open(path, encoding="utf-8") as f:
            self.doc = yaml.safe_load(f)

        self.used = set()
        self.faults = []

    def fault(self, where, what):
        self.faults.append("%s: %s" % (where, what))

    def resolve(self, thing):
        """what a $ref stands for, or the thing itself"""

        while isinstance(thing, dict) and "$ref" in thing:
            name = thing["$ref"]
            self.used.add(name)
            thing = self.doc

            for part in name.lstrip("#/").split("/"):
                thing = thing[part]

        return thing

    def shaped(self, kind, thing, where):
        may, must = (s.split() for s in OBJECTS[kind])

        for name in thing:
            if name not in may and name != "openapi":
                self.fault(where, "has %s" % name)

        for name in must:
            if name not in thing:
                self.fault(where, "has no %s" % name)

    def check(self):
        doc = self.doc
        self.shaped("document", doc, "document")
        self.shaped("info", doc["info"], "info")

        if not re.match(r"3\.1\.\d+$", doc["openapi"]):
            self.fault("openapi", doc["openapi"])

        tags = [tag["name"] for tag in doc["tags"]]
        ids = []

        for path, item in doc["paths"].items():
            self.shaped("path", item, path)

            for method in METHODS:
                if method in item:
                    self.check_operation(path, method, item, tags, ids)

        if len(ids) != len(set(ids)):
            self.fault("operationId", "stands twice")

        parts = doc["components"]
        self.shaped("components", parts, "components")

        for name, response in parts["responses"].items():
            self.check_response(response, name)

        for name, header in parts["headers"].items():
            self.shaped("header", header, name)
            self.check_schema(header["schema"], name)

        for name, schema in parts["schemas"].items():
            self.check_schema(schema, name)

        # answers to what is not listed can be referred to by nobody
        self.used |= {"#/components/responses/" + name
                      for name in ("MethodNotAllowed",
                                   "WorkerMethodNotAllowed")}

        for kind, things in parts.items():
            for name in things:
                if "#/components/%s/%s" % (kind, name) not in self.used \
                        and kind != "headers":
                    self.fault(name, "is not used")

        return self.faults

    def check_operation(self, path, method, item, tags, ids):
        where = "%s %s" % (method.upper(), path)
        op = item[method]
        self.shaped("operation", op, where)
        ids += [op["operationId"]] if "operationId" in op else []

        for tag in op["tags"]:
            if tag not in tags:
                self.fault(where, "no tag %s" % tag)

        names = []

        for parameter in item.get("parameters", []) + op.get("parameters", []):
            parameter = self.resolve(parameter)
            self.shaped("parameter", parameter, where)
            self.check_schema(parameter["schema"], where)

            if parameter["in"] == "path":
                names.append(parameter["name"])

                if parameter.get("required") is not True:
                    self.fault(where, "a part of the path is required")

        if sorted(names) != sorted(re.findall(r"\{(\w+)\}", path)):
            self.fault(where, "parts of the path: %s" % names)

        if "requestBody" in op:
            self.shaped("body", op["requestBody"], where)

            for media in op["requestBody"]["content"].values():
                self.check_schema(media["schema"], where)

        for status, response in op["responses"].items():
            if not re.match(r"[2345]\d\d$", status):
                self.fault(where, "status %s" % status)

            self.check_response(self.resolve(response), where)

    def check_response(self, response, where):
        self.shaped("response", response, where)

        for header in response.get("headers", {}).values():
            self.shaped("header", self.resolve(header), where)

        for media in response.get("content", {}).values():
            self.shaped("media", media, where)

            for schema in media.values():
                self.check_schema(schema, where)

    def check_schema(self, schema, where):
        try:
            Draft202012Validator.check_schema(schema)
        except Exception as e:
            self.fault(where, str(e).split("\n")[0])

        self.check_refs(schema, where)

    def check_refs(self, thing, where):
        if isinstance(thing, dict):
            if "$ref" in thing:
                try:
                    self.resolve(thing)
                except KeyError:
                    self.fault(where, "no %s" % thing["$ref"])

            for part in thing.values():
                self.check_refs(part, where)

        elif isinstance(thing, list):
            for part in thing:
                self.check_refs(part, where)

    def validate(self, schema, value):
        """why it is not that, if it is not"""

        whole = {"allOf": [schema], "components": self.doc["components"]}
        found = []

        for error in Draft202012Validator(whole).iter_errors(value):
            at = "/".join(map(str, error.absolute_path))
            found.append("%s: %s" % (at or "it", error.message[:200]))

        return found

    # --- exchanges

    def judge(self, x):
        """what is wrong with an exchange"""

        item = self.doc["paths"].get(x["path"])

        if item is None:
            return ["the path is not documented"]

        method = x["method"].lower()
        worker = x["path"] == "/worker"

        if method in item:
            response = item[method]["responses"].get(str(x["status"]))

            if response is None:
                return ["the status %s is not documented" % x["status"]]

        elif x["status"] == 405:
            response = {"$ref": "#/components/responses/"
                        + ("Worker" if worker else "") + "MethodNotAllowed"}
            listed = {m.upper() for m in METHODS if m in item}

            if set(x["headers"].get("allow", "").split(", ")) != listed:
                return ["Allow is not what is documented: %s"
                        % x["headers"].get("allow")]
        else:
            return ["the method is not documented"]

        response = self.resolve(response)
        found = self.judge_headers(x, response.get("headers", {}))
        found += self.judge_body(x, response.get("content", {}))

        if worker and x["status"] == 200:
            found += self.judge_worker(x, item[method])

        elif 200 <= x["status"] < 300 and x.get("request") is not None:
            body = item[method]["requestBody"]["content"]["application/json"]
            found += ["request: " + why for why in
                      self.validate(body["schema"], json.loads(x["request"]))]

        return found

    def judge_headers(self, x, headers):
        found = []
        known = {name.lower(): header for name, header
                 in self.doc["components"]["headers"].items()}
        own = {name.lower(): header for name, header in headers.items()}

        for name, header in own.items():
            if self.resolve(header).get("required") \
                    and name not in x["headers"]:
                found.append("the header %s is missing" % name)

        for name, value in x["headers"].items():
            if name in COMMON:
                continue

            # those for pages from elsewhere may be anywhere
            header = own.get(name)

            if header is None and re.match(r"vary|access-control-", name):
                header = known.get(name)

            if header is None:
                found.append("the header %s is not documented" % name)
                continue

            schema = self.resolve(header)["schema"]
            found += ["%s %s" % (name, why)
                      for why in self.validate(schema, value)]

        return found

    def judge_body(self, x, content):
        kind = x["headers"].get("content-type")
        body = x["body"]

        if not content:
            return ["there is a body"] if body or kind else []

        if kind not in content:
            return ["the type %s is not documented" % kind]

        media = content[kind]

        if x["method"] == "HEAD":
            return ["there is a body"] if body else []

        if kind == "text/event-stream":
            events = re.findall(r"^data: (.*)$", body, re.M)
            found = [] if events else ["there are no events"]

            for data in events:
                found += self.validate(media["x-data"], json.loads(data))

            return found

        if "schema" not in media:
            return []

        return self.validate(media["schema"], json.loads(body))

    def judge_worker(self, x, op):
        """a result has to be that of its method"""

        request = json.loads(x["request"])
        answer = json.loads(x["body"])
        schema = op["requestBody"]["content"]["application/json"]["schema"]
        name = schema["discriminator"]["mapping"].get(request["method"])

        if "result" not in answer:
            return []

        if name is None:
            return ["the method is not documented"]

        result = name.replace("Request", "Result")

        if result.split("/")[-1] not in self.doc["components"]["schemas"]:
            result = "#/components/schemas/HeldResult"

        return (["request: " + why
                 for why in self.validate({"$ref": name}, request)]
                + self.validate({"$ref": result}, answer)
                + self.validate({"oneOf": schema["oneOf"]}, request))


def main():
    document = Document(sys.argv[1])
    faults = document.check()

    for why in faults or [None]:
        print("not ok the document: " + why if why else "ok the document")

    seen = set()
    methods = set()

    for line in sys.stdin:
        x = json.loads(line)
        seen.add((x["path"], x["method"].lower(), str(x["status"])))
        name = "%s %s: %s%s" % (x["method"], x["path"], x["status"],
                                ", " + x["name"] if x.get("name") else "")
        found = document.judge(x)

        if x["path"] == "/worker" and x["status"] == 200 and not found \
                and "result" in json.loads(x["body"]):
            methods.add(json.loads(x["request"])["method"])

        print("not ok %s: %s" % (name, "; ".join(found).replace("\n", " "))
              if found else "ok " + name)

    # nothing is documented that does not happen
    for path, item in document.doc["paths"].items():
        for method in METHODS:
            for status in item.get(method, {}).get("responses", {}):
                if (path, method, status) not in seen:
                    print("not ok %s %s: %s was never seen"
                          % (method.upper(), path, status))

    schema = document.doc["paths"]["/worker"]["post"]["requestBody"]
    schema = schema["content"]["application/json"]["schema"]

    for name in schema["discriminator"]["mapping"]:
        if name not in methods:
            print("not ok %s has never had a result" % name)

    print("ok the end")


main()
