"""A simulated documentation platform: its administrative API and its object storage, over real HTTP.

Its only source is the OpenAPI description in docs/admin-api.openapi.yaml. It shares no code with the action, so that two
readings of one contract keep each other honest.
"""

from admin_api_simulator.faults import Fault
from admin_api_simulator.recording import RecordedRequest
from admin_api_simulator.simulator import Simulator

__all__ = ["Fault", "RecordedRequest", "Simulator"]
