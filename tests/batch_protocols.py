"""Fake servers for the batch APIs of OpenAI, Anthropic and Mistral.

They store files and jobs like the providers, refuse what those refuse, and return results in
another order than that of the requests.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tests import anthropic_replies, mistral_replies
from tests.batch_server import BatchServer
from tests.protocol_server import Reply

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.batch_server import StoredJob
    from tests.protocol_server import ReceivedRequest


def json_lines(records: list[dict[str, Any]]) -> bytes:
    # Not escaped, so that Unicode's line separators remain in the texts.
    return b"".join(json.dumps(each, ensure_ascii=False).encode() + b"\n" for each in records)


def read_lines(raw: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in raw.split(b"\n") if line]


def unique_ids(requests: list[dict[str, Any]], pattern: str) -> bool:
    """Return True if all custom ids are different and match the pattern."""
    names = [each["custom_id"] for each in requests]
    return len(set(names)) == len(names) and all(re.fullmatch(pattern, name) for name in names)


class FileBatches(BatchServer):
    """The common part of OpenAI and Mistral: requests and results are files of JSON Lines.

    `lists_unexecuted` tells whether results include requests that expired or were cancelled.
    """

    jobs_path = ""
    lists_unexecuted = False

    def handle(self, call: ReceivedRequest) -> Reply:
        job = call.path.removeprefix(f"{self.jobs_path}/")
        match call.method, call.path.split("/")[1:]:
            case "POST", ["v1", "files"]:
                return self._upload(call.body)
            case "GET", ["v1", "files", name, "content"] if name in self.files:
                return Reply(body=self.files[name])
            case "POST", _ if call.path == self.jobs_path:
                return self.create(call.body)
            case "GET", _ if call.path == self.jobs_path:
                return self.list_jobs(call.query)
            case "GET", _ if job in self.jobs:
                return Reply(body=self.describe(self.look_at(job)))
        return self.error(404, "not_found")

    def create(self, body: dict[str, Any]) -> Reply:
        raise NotImplementedError

    def list_jobs(self, query: Mapping[str, list[str]]) -> Reply:
        raise NotImplementedError

    def describe(self, job: StoredJob) -> dict[str, Any]:
        raise NotImplementedError

    def error(self, status: int, code: str) -> Reply:
        raise NotImplementedError

    def _upload(self, form: dict[str, Any]) -> Reply:
        file_name, content = form["file"]
        if form["purpose"] != "batch" or not file_name.endswith(".jsonl"):
            return self.error(400, "invalid_file")
        name = f"file-{len(self.files) + 1}"
        self.files[name] = content
        stored = {"id": name, "object": "file", "bytes": len(content), "filename": file_name}
        extra = {"created_at": int(self.clock), "sample_type": "batch_request", "source": "upload"}
        return Reply(body=stored | extra | {"purpose": "batch"})

    def add(self, requests: list[dict[str, Any]], metadata: Mapping[str, str]) -> Reply:
        name = self.add_job({each["custom_id"]: each["body"] for each in requests}, metadata)
        return Reply(body=self.describe(self.jobs[name]))

    def write_results(self, job: StoredJob) -> tuple[int, int, str | None, str | None]:
        """Write the files of an ended job; return the numbers of answers and errors, and names."""
        good, bad = [], []
        for name, item in self.outcomes(job).items():
            line = {"id": f"batch-{name}", "custom_id": name, "response": None, "error": None}
            if item.kind == "succeeded":
                body: object = mistral_replies.answer_body(item.text)
                good.append(line | {"response": response(200, body)})
            elif item.kind == "errored":
                body = self.error(item.status, item.code).body
                bad.append(line | {"response": response(item.status, body)})
            elif item.kind != "absent" and self.lists_unexecuted:
                error = {"code": f"batch_{item.kind}", "message": "not executed"}
                bad.append(line | {"error": error})
        output, errors = f"{job.id}-output", f"{job.id}-errors"
        self.files[output], self.files[errors] = json_lines(good[::-1]), json_lines(bad)
        return len(good), len(bad), output if good else None, errors if bad else None


def response(status: int, body: object) -> dict[str, Any]:
    return {"status_code": status, "request_id": "req_1", "body": body}


class OpenAIBatches(FileBatches):
    """Files, Batches: https://platform.openai.com/docs/api-reference/batch."""

    jobs_path = "/v1/batches"
    lists_unexecuted = True

    def error(self, status: int, code: str) -> Reply:
        error = {"message": f"refused: {code}", "type": code, "param": None, "code": code}
        return Reply(status, {"error": error})

    def create(self, body: dict[str, Any]) -> Reply:
        if body["completion_window"] != "24h" or body["input_file_id"] not in self.files:
            return self.error(400, "invalid_request")
        requests = read_lines(self.files[body["input_file_id"]])
        targets = {(each["url"], each["method"]) for each in requests}
        if targets != {(body["endpoint"], "POST")} or not unique_ids(requests, ".{1,64}"):
            return self.error(400, "invalid_request")
        return self.add(requests, body["metadata"])

    def list_jobs(self, query: Mapping[str, list[str]]) -> Reply:
        newest_first = list(reversed(self.jobs.values()))
        page, more = page_after(newest_first, query.get("after"))
        last = page[-1].id if page else None
        data = [self.describe(job) for job in page]
        return Reply(body={"object": "list", "data": data, "has_more": more, "last_id": last})

    def describe(self, job: StoredJob) -> dict[str, Any]:
        ended, failed = self.ended(job), self.final == "failed"
        good, bad, output, errors = (0, 0, None, None)
        if ended and not failed:
            good, bad, output, errors = self.write_results(job)
        error = {"code": self.outcome(0).code, "message": "refused", "line": 1, "param": None}
        return {
            "id": job.id,
            "object": "batch",
            "endpoint": "/v1/chat/completions",
            "input_file_id": "file-1",
            "completion_window": "24h",
            "created_at": int(job.created),
            "metadata": job.metadata,
            "status": (self.final or "completed") if ended else "in_progress",
            "request_counts": {"total": len(job.requests), "completed": good, "failed": bad},
            "output_file_id": output,
            "error_file_id": errors,
            "errors": {"object": "list", "data": [error]} if ended and failed else None,
        }


class MistralBatches(FileBatches):
    """Files, Batch: https://docs.mistral.ai/api/endpoint/batch."""

    jobs_path = "/v1/batch/jobs"

    def error(self, status: int, code: str) -> Reply:
        return mistral_replies.failure(status, code, "refused", code=code)

    def create(self, body: dict[str, Any]) -> Reply:
        [source] = body["input_files"]
        if source not in self.files or body["endpoint"] != "/v1/chat/completions":
            return self.error(400, "invalid_request")
        requests = read_lines(self.files[source])
        models = {each["body"].get("model", body["model"]) for each in requests}
        if models != {body["model"]} or not unique_ids(requests, ".+"):
            return self.error(400, "invalid_request")
        return self.add(requests, body["metadata"])

    def list_jobs(self, query: Mapping[str, list[str]]) -> Reply:
        page = int(query["page"][0])
        newest_first = list(reversed(self.jobs.values()))
        described = [self.describe(job) for job in newest_first[2 * page : 2 * page + 2]]
        return Reply(body={"object": "list", "total": len(self.jobs), "data": described})

    def describe(self, job: StoredJob) -> dict[str, Any]:
        ended = self.ended(job)
        good, bad, output, errors = self.write_results(job) if ended else (0, 0, None, None)
        return {
            "id": job.id,
            "object": "batch",
            "input_files": ["file-1"],
            "endpoint": "/v1/chat/completions",
            "model": "scripted-model",
            "metadata": job.metadata,
            "errors": [],
            "status": (self.final or "SUCCESS") if ended else "RUNNING",
            "created_at": int(job.created),
            "total_requests": len(job.requests),
            "completed_requests": good + bad,
            "succeeded_requests": good,
            "failed_requests": bad,
            "output_file": output,
            "error_file": errors,
        }


class AnthropicBatches(BatchServer):
    """Message Batches: https://platform.claude.com/docs/en/api/messages/batches."""

    def handle(self, call: ReceivedRequest) -> Reply:
        match call.method, call.path.split("/")[1:]:
            case "POST", ["v1", "messages", "batches"]:
                return self._create(call.body["requests"])
            case "GET", ["v1", "messages", "batches"]:
                return self._list(call.query)
            case "GET", ["v1", "messages", "batches", name] if name in self.jobs:
                return Reply(body=self._describe(self.look_at(name)))
            case "GET", ["v1", "messages", "batches", name, "results"] if name in self.jobs:
                return Reply(body=self._results(self.jobs[name]))
        return self.error(404, "not_found_error")

    def error(self, status: int, kind: str) -> Reply:
        return anthropic_replies.failure(status, kind, "refused")

    def _create(self, requests: list[dict[str, Any]]) -> Reply:
        if not unique_ids(requests, "[a-zA-Z0-9_-]{1,64}"):
            return self.error(400, "invalid_request_error")
        name = self.add_job({each["custom_id"]: each["params"] for each in requests})
        return Reply(body=self._describe(self.jobs[name]))

    def _list(self, query: Mapping[str, list[str]]) -> Reply:
        newest_first = sorted(self.jobs.values(), key=lambda job: -job.created)
        page, more = page_after(newest_first, query.get("after_id"))
        first, last = (page[0].id, page[-1].id) if page else (None, None)
        data = [self._describe(self.look_at(job.id)) for job in page]
        return Reply(body={"data": data, "has_more": more, "first_id": first, "last_id": last})

    def _describe(self, job: StoredJob) -> dict[str, Any]:
        ended = self.ended(job)
        kinds = [item.kind for item in self.outcomes(job).values()]
        counts = {
            "processing": 0 if ended else len(kinds),
            "succeeded": kinds.count("succeeded") + kinds.count("absent") if ended else 0,
            "errored": kinds.count("errored") if ended else 0,
            "canceled": kinds.count("cancelled") if ended else 0,
            "expired": kinds.count("expired") if ended else 0,
        }
        return {
            "id": job.id,
            "type": "message_batch",
            "processing_status": "ended" if ended else "in_progress",
            "request_counts": counts,
            "created_at": _rfc3339(job.created),
            "expires_at": _rfc3339(job.created + 86400),
            "results_url": f"{self.url}/v1/messages/batches/{job.id}/results" if ended else None,
        }

    def _results(self, job: StoredJob) -> bytes:
        lines = []
        for name, item in self.outcomes(job).items():
            result: dict[str, Any] = {"type": {"cancelled": "canceled"}.get(item.kind, item.kind)}
            if item.kind == "succeeded":
                result["message"] = anthropic_replies.message(item.text).body
            elif item.kind == "errored":
                result["error"] = self.error(item.status, item.code).body
            if item.kind != "absent":
                lines.append({"custom_id": name, "result": result})
        return json_lines(lines[::-1])


def page_after(jobs: list[StoredJob], after: list[str] | None) -> tuple[list[StoredJob], bool]:
    """Return the two jobs after the one with an id, and whether there are more."""
    start = [job.id for job in jobs].index(after[0]) + 1 if after else 0
    return jobs[start : start + 2], start + 2 < len(jobs)


def _rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
