// SIGTERM and SIGINT, waited for instead of handled.
#pragma once

namespace stepcast::server {

// Blocks both in this thread and those it starts. To be called before any thread is started.
void BlockStopSignals();

// Waits for one of them. From then on the next one ends the process at once, with status 128 + its number.
void WaitForStopSignal();

}  // namespace stepcast::server
