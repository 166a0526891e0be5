"""A refresh at work: from its row to a measurement, with every step told to the row."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from dataclasses import asdict
from decimal import Decimal
from typing import Any

from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connection, transaction
from django.utils import timezone

from sizing import log_context
from sizing.domain.levels import POISSON, Judged, Verdict, load_words
from sizing.domain.staleness import shape_of
from sizing.domain.throughput import groups
from sizing.measuring import bench, refreshes, schedule
from sizing.measuring.bench import Effort, Outcome, Plan, Status
from sizing.measuring.keys import key_for
from sizing.measuring.makers import maker
from sizing.measuring.patience import patiently
from sizing.measuring.refreshes import Claim
from sizing.measuring.seam import Endpoint, MeasuringError, Stopped, Workload
from sizing.models import BenchLevel, Gpu, Measurement, Refresh, history
from sizing.models.history import By
from sizing.models.locking import inventory_lock
from sizing.snapshot import variant_spec

log = logging.getLogger(__name__)

BEAT_EVERY_S = 0.9
"""A wish to cancel is seen, and the worker's life told, this often."""

BROKE_OFF = "the measurement broke off; the worker's log tells why"


def run(pk: int) -> bool:
    """Take the measurement of a queued refresh to its end. False: it was not this worker's to take."""
    claim = refreshes.claim(pk)
    if claim is None:
        return False
    with log_context.telling(refresh=pk, request_id=claim.request_id):
        log.info("refresh %s begins on %s, attempt %s", pk, claim.replica.name, claim.attempt)
        ended = False
        try:
            measure_claimed(claim, RowObserver(claim))
            ended = True
        finally:
            if not ended:
                with suppress(DatabaseError):
                    refreshes.fail(claim, BROKE_OFF)
    return True


def measure_claimed(claim: Claim, observer: bench.Observer) -> Outcome | None:
    """Measure for a claim and end its row: done, failed or cancelled. The outcome where there is one."""
    what = f"refresh {claim.pk}"
    found = Refresh.objects.select_related("variant__model", "profile")
    row = patiently(lambda: found.get(pk=claim.pk), what)
    try:
        plan = plan_of(row, claim)
        outcome = bench.measure(plan, observer)
        _check_usable(outcome)
    except Stopped:
        if patiently(lambda: refreshes.stopped(claim), what):
            log.info("refresh %s is cancelled", claim.pk)
        else:
            log.warning("refresh %s is in other hands; this attempt of it ends", claim.pk)
        return None
    except MeasuringError as error:
        reason = str(error)
        patiently(lambda: _failed(claim, row, reason), what)
        return None
    except SoftTimeLimitExceeded:
        patiently(lambda: _failed(claim, row, "the time limit of a task ended it"), what)
        return None
    patiently(lambda: store(claim, row, plan, outcome), what)
    log.info("refresh %s has measured: %s", claim.pk, outcome.throughput.bracket)
    return outcome


def plan_of(row: Refresh, claim: Claim) -> Plan:
    """What a refresh measures, from its profile, its replica, its options and the desk's settings."""
    profile, options, bounds = row.profile, row.options, settings.BENCH
    model = row.variant.model.name
    endpoint = Endpoint(
        url=claim.replica.endpoint,
        model=model,
        networks=tuple(str(network) for network in settings.ENDPOINT_NETWORKS),
        key=key_for(claim.replica.endpoint, model, settings.ENDPOINT_KEYS_DIR),
    )
    workload = Workload(profile.input_tokens, profile.output_tokens, seed=options.get("seed", row.pk))
    highest = bounds.max_rate if profile.arrival == POISSON else float(bounds.max_streams)
    effort = Effort(
        budget_s=options.get("budget_s", bounds.budget_s),
        level_s=options.get("level_s", bounds.level_s),
        most_levels=options.get("most_levels", bounds.most_levels),
        resolution=options.get("resolution", bounds.resolution),
        lowest=options.get("lowest"),
        highest=min(options.get("highest", highest), highest),
    )
    generator = maker(options.get("generator", bounds.generator), bounds.guidellm_bin)
    return Plan(endpoint, workload, profile.slo, profile.arrival, generator, effort)


def _check_usable(outcome: Outcome) -> None:
    """A figure, or an SLO that is surely not met; anything else is a failed run."""
    if outcome.throughput.tok_per_sec is not None:
        return
    by_load = groups(outcome.levels)
    if not by_load or by_load[0].verdict is not Verdict.FAIL:
        raise MeasuringError(f"no level could be judged: {outcome.throughput.bracket}")


def _failed(claim: Claim, row: Refresh, error: str) -> None:
    with transaction.atomic():
        if refreshes.fail(claim, " ".join(error.split())):
            schedule.note_failure(row.variant_id, row.profile_id)
            log.warning("refresh %s failed: %s", claim.pk, error)


def store(claim: Claim, row: Refresh, plan: Plan, outcome: Outcome) -> None:
    """Keep what was measured and end the row, both or none: nothing is lost and nothing stored twice."""
    result = outcome.throughput
    with inventory_lock():
        if not refreshes.finish(claim, result.bracket):
            if not refreshes.stopped(claim):
                log.warning("refresh %s is in other hands; its result is dropped", claim.pk)
            return
        if not row.save_result or (result.tok_per_sec is None and plan.effort.lowest is not None):
            return  # that a raised lowest load fails says nothing of the loads below it
        now = timezone.now()
        measurement = Measurement.objects.create(
            variant=row.variant,
            profile=row.profile,
            tok_per_sec=round(Decimal(result.tok_per_sec or 0), 6),
            measured_at=now,
            source=plan.maker.name.partition(" ")[0],
            bound=result.bound,
            engine=outcome.engine,
            warnings=list(outcome.warnings),
            slo_met=result.tok_per_sec is not None,
            bracket=result.bracket[:255],
            generator=plan.maker.name,
            workload=_workload(plan, outcome),
            replica_name=claim.replica.name,
            gpu_type=_gpu_type(claim),
            variant_shape=shape_of(variant_spec(row.variant)),
            refresh_id=claim.pk,
        )
        history.write(By(f"refresh {claim.pk}", row.requested_by), [history.added(measurement)])
        BenchLevel.objects.filter(refresh_id=claim.pk).update(refresh=None, measurement=measurement)
        if outcome.engine and outcome.engine != row.variant.engine_seen:
            type(row.variant).objects.filter(pk=row.variant_id).update(engine_seen=outcome.engine)
        if measurement.slo_met:
            schedule.note_success(row.variant_id, row.profile, now)
        else:
            schedule.note_failure(row.variant_id, row.profile_id)


def _workload(plan: Plan, outcome: Outcome) -> dict[str, Any]:
    alone = outcome.alone
    return {
        "input_tokens": plan.workload.input_tokens,
        "output_tokens": plan.workload.output_tokens,
        "arrival": plan.arrival,
        "seed": plan.workload.seed,
        "slo": asdict(plan.slo),
        "alone": {
            "ttft_ms": alone.ttft_ms,
            "e2e_ms": alone.e2e_ms,
            "prompt_tokens": alone.prompt_tokens,
            "output_tokens": alone.output_tokens,
        },
    }


def _gpu_type(claim: Claim) -> str:
    found = Gpu.objects.filter(placements__replica=claim.replica).order_by("node__name", "index").first()
    return found.type if found else ""


class RowObserver:
    """Tells a refresh's row how far it is, and hears from it when to stop."""

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self.last_beat = 0.0
        self.latest = Status("beginning")

    def status(self, status: Status) -> bool:
        self.latest = status
        if time.monotonic() - self.last_beat < BEAT_EVERY_S:
            return True
        return self._beat()

    def level(self, position: int, judged: Judged) -> bool:
        return patiently(lambda: self._level(position, judged), f"refresh {self.claim.pk}")

    def _level(self, position: int, judged: Judged) -> bool:
        if not refreshes.still_benchable(self.claim):
            raise MeasuringError(f"{self.claim.replica.name} may no longer be measured: it changed meanwhile")
        with transaction.atomic():
            if not self._tell():
                return False
            BenchLevel.objects.update_or_create(
                refresh_id=self.claim.pk,
                position=position,
                defaults={
                    "verdict": judged.verdict,
                    "why": judged.why[:255],
                    "observed": judged.level.as_dict(),
                },
            )
        return True

    def _beat(self) -> bool:
        """One sign of life; while the database is away the measurement goes on, for as long as its lease."""
        try:
            return self._tell()
        except DatabaseError as error:
            log.warning("refresh %s cannot tell how far it is: %s", self.claim.pk, error)
            connection.close()
            return True
        finally:
            self.last_beat = time.monotonic()

    def _tell(self) -> bool:
        status = self.latest
        return refreshes.heartbeat(self.claim, status.percent, status_words(status), live_form(status))


def live_form(status: Status) -> dict[str, Any]:
    """The level that is being measured, as the row keeps it."""
    progress = status.progress
    return {
        "level": status.level,
        "most": status.most,
        "load": status.load,
        "arrival": status.arrival,
        "purpose": status.purpose,
        "seconds": round(progress.seconds, 1),
        "sent": progress.sent,
        "completed": progress.completed,
        "failed": progress.failed,
        "tok_per_sec": round(progress.tok_per_sec, 1),
    }


def status_words(status: Status) -> str:
    """How far a measurement is, in one line."""
    if status.load is None:
        return status.purpose
    return f"level {status.level}, {load_words(status.arrival, status.load)}: {status.purpose}"
