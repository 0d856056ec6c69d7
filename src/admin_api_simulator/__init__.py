"""A simulated documentation platform: its administrative API and object storage, over real HTTP.

It is written from the OpenAPI description in docs/admin-api.openapi.yaml alone, and shares no code
with the action, so that a misreading of the description shows.
"""

from admin_api_simulator.faults import Fault
from admin_api_simulator.jobs import ExportPlan
from admin_api_simulator.limits import StartQuota
from admin_api_simulator.recording import RecordedRequest
from admin_api_simulator.simulator import Simulator
from admin_api_simulator.site import SiteChange

__all__ = ["ExportPlan", "Fault", "RecordedRequest", "Simulator", "SiteChange", "StartQuota"]
