"""The application.

Each area is a module with an `APIRouter` called `router`, which is listed in `ROUTERS`. Its tables
are in `tables`, and its templates extend `base.html`.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from anyio import CapacityLimiter
from fastapi import Depends, FastAPI
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter
from prometheus_client import CollectorRegistry
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.staticfiles import StaticFiles

import pii_bench
from pii_bench.errors import PiiBenchError
from pii_bench.web import annotate, mask, people, project_pages, proxy, review_pages
from pii_bench.web.accounts import Role, list_accounts, local_owner
from pii_bench.web.database import Database
from pii_bench.web.masker import Masker
from pii_bench.web.middleware import BodyLimit, Guard
from pii_bench.web.pages import STATIC, add_handlers
from pii_bench.web.proxy import open_upstream
from pii_bench.web.security import admit
from pii_bench.web.state import State

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pii_bench.web.settings import Settings

ROUTERS: Final = (
    people.router,
    mask.router,
    proxy.router,
    annotate.router,
    project_pages.router,
    review_pages.router,
)


def create_app(settings: Settings) -> FastAPI:
    """Return the application of a server and open its database.

    Raises:
        PiiBenchError: the database cannot be used; other machines can connect, but no owner has
            an account; the upstream does not exist, or its key is missing.
    """
    database = Database(settings.database)
    roles = [account.role for account in list_accounts(database)]
    if not settings.is_loopback and Role.OWNER not in roles:
        raise PiiBenchError(
            f"other machines can reach {settings.host}, but no owner has an account: make one "
            "first with `pii-bench serve --add-owner NAME`, or bind to 127.0.0.1"
        )
    metrics = CollectorRegistry()
    masker = Masker(settings)
    upstream = open_upstream(settings.upstream) if settings.upstream else None

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        masker.close()
        if upstream is not None:
            await upstream.aclose()
        database.close()

    app = FastAPI(
        title="pii_bench",
        version=pii_bench.__version__,
        lifespan=lifespan,
        dependencies=[Depends(admit)],
        middleware=[
            Middleware(Guard, metrics=metrics),
            Middleware(
                TrustedHostMiddleware, allowed_hosts=settings.allowed_hosts, www_redirect=False
            ),
            Middleware(BodyLimit),
        ],
        # Both pages load scripts from other sites.
        docs_url=None,
        redoc_url=None,
        # Telemetry would record request bodies and exceptions with personal texts.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    app.state.web = State(
        settings=settings,
        database=database,
        masker=masker,
        uploads=CapacityLimiter(2),
        metrics=metrics,
        upstream=upstream,
        limiter=MovingWindowRateLimiter(MemoryStorage()),
        local=local_owner(database) if settings.is_loopback else None,
    )
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    for router in ROUTERS:
        app.include_router(router)
    add_handlers(app)
    return app
