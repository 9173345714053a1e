import pytest
from support.kernel_cases import BACKENDS, Backend, backend_or_skip


@pytest.fixture(params=BACKENDS)
def backend(request) -> Backend:
    """Every kernel: of the CPU, of the GPU emulated on the CPU, and of the GPU if there is one."""
    return backend_or_skip(request.param)
