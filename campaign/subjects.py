"""The subjects of campaigns, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from campaign import changes, jobs, plans, snapshots, spark_plans, texts, troubles, values
from campaign.faults import subject as faults
from campaign.subject import Subject

SUBJECTS: Mapping[str, Subject[Any]] = {
    subject.name: subject
    for subject in (
        changes.SUBJECT,
        faults.SUBJECT,
        jobs.SUBJECT,
        plans.SUBJECT,
        snapshots.SUBJECT,
        spark_plans.SUBJECT,
        texts.SUBJECT,
        troubles.SUBJECT,
        values.SUBJECT,
    )
}
