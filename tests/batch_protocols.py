"""The batch protocols of OpenAI, Anthropic and Mistral, for tests.

They hold uploaded files and jobs as the providers do, refuse what those refuse, and give results
in another order than that of the requests.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tests.batch_server import BatchServer
from tests.protocol_server import Reply

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.batch_server import StoredJob
    from tests.protocol_server import ReceivedRequest


def json_lines(records: list[dict[str, Any]]) -> bytes:
    # As it is, not in escapes: line separators of Unicode stay in the texts.
    return b"".join(json.dumps(each, ensure_ascii=False).encode() + b"\n" for each in records)


def read_lines(raw: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in raw.split(b"\n") if line]


def unique_ids(requests: list[dict[str, Any]], pattern: str) -> bool:
    """Whether each custom id is of a form and stands once."""
    names = [each["custom_id"] for each in requests]
    return len(set(names)) == len(names) and all(re.fullmatch(pattern, name) for name in names)


class OpenAIBatches(BatchServer):
    """Files, Batches: https://platform.openai.com/docs/api-reference/batch."""

    def handle(self, call: ReceivedRequest) -> Reply:
        match call.method, call.path.removeprefix("/v1").split("/")[1:]:
            case "POST", ["files"]:
                return self._upload(call)
            case "POST", ["batches"]:
                return self._create(call.body)
            case "GET", ["batches"]:
                return self._list(call.query)
            case "GET", ["batches", name] if name in self.jobs:
                return Reply(body=self._describe(self.look_at(name)))
            case "GET", ["files", name, "content"] if name in self.files:
                return Reply(body=self.files[name])
        return self.error(404, "not_found")

    def error(self, status: int, code: str) -> Reply:
        error = {"message": f"refused: {code}", "type": code, "param": None, "code": code}
        return Reply(status, {"error": error})

    def _upload(self, call: ReceivedRequest) -> Reply:
        file_name, content = call.body["file"]
        if call.body["purpose"] != "batch" or not file_name.endswith(".jsonl"):
            return self.error(400, "invalid_file")
        name = f"file-{len(self.files) + 1}"
        self.files[name] = content
        return Reply(body={"id": name, "object": "file", "purpose": "batch"})

    def _create(self, body: dict[str, Any]) -> Reply:
        if body["completion_window"] != "24h" or body["input_file_id"] not in self.files:
            return self.error(400, "invalid_request")
        requests = read_lines(self.files[body["input_file_id"]])
        fits = all(
            each["url"] == body["endpoint"] and each["method"] == "POST" for each in requests
        )
        if not fits or not unique_ids(requests, ".{1,64}"):
            return self.error(400, "invalid_request")
        name = self.add_job(
            {each["custom_id"]: each["body"] for each in requests}, body["metadata"]
        )
        return Reply(body=self._describe(self.jobs[name]))

    def _list(self, query: Mapping[str, list[str]]) -> Reply:
        newest_first = list(reversed(self.jobs.values()))
        names = [job.id for job in newest_first]
        start = names.index(query["after"][0]) + 1 if "after" in query else 0
        page = newest_first[start : start + 2]
        more = start + 2 < len(newest_first)
        return Reply(
            body={
                "object": "list",
                "data": [self._describe(job) for job in page],
                "has_more": more,
                "last_id": page[-1].id if page else None,
            }
        )

    def _describe(self, job: StoredJob) -> dict[str, Any]:
        ended = self.ended(job)
        described = {
            "id": job.id,
            "object": "batch",
            "endpoint": "/v1/chat/completions",
            "input_file_id": "file-1",
            "completion_window": "24h",
            "created_at": int(job.created),
            "metadata": job.metadata,
            "status": (self.final or "completed") if ended else "in_progress",
            "request_counts": {"total": len(job.requests), "completed": 0, "failed": 0},
        }
        if not ended:
            return described
        if self.final == "failed":
            error = {"code": self.outcome(0).code, "message": "refused", "line": 1, "param": None}
            return described | {"errors": {"object": "list", "data": [error]}}
        return described | self._write_results(job)

    def _write_results(self, job: StoredJob) -> dict[str, Any]:
        good, bad = [], []
        for name, item in self.outcomes(job).items():
            line = {"id": f"batch_req_{name}", "custom_id": name, "response": None, "error": None}
            if item.kind == "succeeded":
                good.append(line | {"response": self._response(200, chat_completion(item.text))})
            elif item.kind == "errored":
                error = self.error(item.status, item.code).body
                bad.append(line | {"response": self._response(item.status, error)})
            elif item.kind != "absent":
                error = {"code": f"batch_{item.kind}", "message": "not executed"}
                bad.append(line | {"error": error})
        output, errors = f"{job.id}-output", f"{job.id}-errors"
        self.files[output], self.files[errors] = json_lines(good[::-1]), json_lines(bad)
        counts = {"total": len(job.requests), "completed": len(good), "failed": len(bad)}
        return {
            "request_counts": counts,
            "output_file_id": output if good else None,
            "error_file_id": errors if bad else None,
        }

    def _response(self, status: int, body: object) -> dict[str, Any]:
        return {"status_code": status, "request_id": "req_1", "body": body}


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
        return Reply(status, {"type": "error", "error": {"type": kind, "message": "refused"}})

    def _create(self, requests: list[dict[str, Any]]) -> Reply:
        if not unique_ids(requests, "[a-zA-Z0-9_-]{1,64}"):
            return self.error(400, "invalid_request_error")
        name = self.add_job({each["custom_id"]: each["params"] for each in requests})
        return Reply(body=self._describe(self.jobs[name]))

    def _list(self, query: Mapping[str, list[str]]) -> Reply:
        newest_first = sorted(self.jobs.values(), key=lambda job: -job.created)
        names = [job.id for job in newest_first]
        start = names.index(query["after_id"][0]) + 1 if "after_id" in query else 0
        page = newest_first[start : start + 2]
        return Reply(
            body={
                "data": [self._describe(self.look_at(job.id)) for job in page],
                "has_more": start + 2 < len(newest_first),
                "first_id": page[0].id if page else None,
                "last_id": page[-1].id if page else None,
            }
        )

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
                result["message"] = message(item.text)
            elif item.kind == "errored":
                result["error"] = self.error(item.status, item.code).body
            if item.kind != "absent":
                lines.append({"custom_id": name, "result": result})
        return json_lines(lines[::-1])


class MistralBatches(BatchServer):
    """Files, Batch: https://docs.mistral.ai/api/endpoint/batch."""

    def handle(self, call: ReceivedRequest) -> Reply:
        match call.method, call.path.split("/")[1:]:
            case "POST", ["v1", "files"]:
                return self._upload(call)
            case "POST", ["v1", "batch", "jobs"]:
                return self._create(call.body)
            case "GET", ["v1", "batch", "jobs"]:
                return self._list(call.query)
            case "GET", ["v1", "batch", "jobs", name] if name in self.jobs:
                return Reply(body=self._describe(self.look_at(name)))
            case "GET", ["v1", "files", name, "content"] if name in self.files:
                return Reply(body=self.files[name])
        return self.error(404, "not_found")

    def error(self, status: int, code: str) -> Reply:
        body = {"object": "error", "message": "refused", "type": code, "param": None, "code": code}
        return Reply(status, body)

    def _upload(self, call: ReceivedRequest) -> Reply:
        file_name, content = call.body["file"]
        if call.body["purpose"] != "batch":
            return self.error(400, "invalid_file")
        name = f"file-{len(self.files) + 1}"
        self.files[name] = content
        stored = {"id": name, "object": "file", "bytes": len(content), "filename": file_name}
        extra = {"created_at": int(self.clock), "sample_type": "batch_request", "source": "upload"}
        return Reply(body=stored | extra | {"purpose": "batch"})

    def _create(self, body: dict[str, Any]) -> Reply:
        [source] = body["input_files"]
        if source not in self.files or body["endpoint"] != "/v1/chat/completions":
            return self.error(400, "invalid_request")
        requests = read_lines(self.files[source])
        if not unique_ids(requests, ".+") or any(
            each["body"].get("model", body["model"]) != body["model"] for each in requests
        ):
            return self.error(400, "invalid_request")
        name = self.add_job(
            {each["custom_id"]: each["body"] for each in requests}, body["metadata"]
        )
        return Reply(body=self._describe(self.jobs[name]))

    def _list(self, query: Mapping[str, list[str]]) -> Reply:
        page = int(query["page"][0])
        newest_first = list(reversed(self.jobs.values()))
        described = [self._describe(job) for job in newest_first[2 * page : 2 * page + 2]]
        return Reply(body={"object": "list", "total": len(self.jobs), "data": described})

    def _describe(self, job: StoredJob) -> dict[str, Any]:
        ended = self.ended(job)
        described = {
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
            "completed_requests": 0,
            "succeeded_requests": 0,
            "failed_requests": 0,
            "output_file": None,
            "error_file": None,
        }
        return described | self._write_results(job) if ended else described

    def _write_results(self, job: StoredJob) -> dict[str, Any]:
        good, bad = [], []
        for name, item in self.outcomes(job).items():
            line = {"id": f"batch-{name}", "custom_id": name, "response": None, "error": None}
            if item.kind == "succeeded":
                body = chat_completion(item.text)
                good.append(line | {"response": {"status_code": 200, "body": body}})
            elif item.kind == "errored":
                error = self.error(item.status, item.code).body
                bad.append(line | {"response": {"status_code": item.status, "body": error}})
        output, errors = f"{job.id}-output", f"{job.id}-errors"
        self.files[output], self.files[errors] = json_lines(good[::-1]), json_lines(bad)
        return {
            "completed_requests": len(good) + len(bad),
            "succeeded_requests": len(good),
            "failed_requests": len(bad),
            "output_file": output if good else None,
            "error_file": errors if bad else None,
        }


def chat_completion(text: str) -> dict[str, Any]:
    """A body of Chat Completions, as OpenAI and Mistral write it."""
    message = {"role": "assistant", "content": text}
    return {
        "id": "cmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "scripted-model",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }


def message(text: str) -> dict[str, Any]:
    """A body of Messages, as Anthropic writes it."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "scripted-model",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 7},
    }


def _rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
