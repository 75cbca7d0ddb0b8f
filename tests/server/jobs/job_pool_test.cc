#include "server/jobs/job_pool.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "core/base/error.h"
#include "tests/server/jobs/counting_observer.h"
#include "tests/server/jobs/gate.h"

namespace stepcast::server::job_pool_test {
namespace {

TEST(JobPoolTest, RunsEveryJobOnce) {
  std::vector<std::atomic<int>> runs(50);
  {
    JobPool pool({.threads = 3, .queue_max = 50});
    for (std::atomic<int>& run : runs) ASSERT_TRUE(pool.Submit([&run] { ++run; }).ok());
  }
  for (const std::atomic<int>& run : runs) EXPECT_EQ(run, 1);
}

// The niceness of the calling thread, and the time that it is given at once: 0 where the system,
// before Linux 6.12, gives all the same.
struct Scheduling {
  int nice = 0;
  uint64_t slice_ns = 0;

  static Scheduling OfThisThread() {
    std::array<uint64_t, 6> attributes{};  // as sched_setattr(2); the fourth is the time
    const bool is_told = syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) == 0;
    return {.nice = getpriority(PRIO_PROCESS, static_cast<id_t>(gettid())),
            .slice_ns = is_told ? attributes[3] : 0};
  }
};

TEST(JobPoolTest, ItsThreadsYieldToOthersOfTheProcess) {
  const Scheduling own = Scheduling::OfThisThread();
  std::promise<Scheduling> of_job;
  std::promise<Scheduling> of_helper;
  JobPool pool({.threads = 1, .queue_max = 1, .helpers = 1, .nice = 3});
  JobPool::Helper helper = [&of_helper] { of_helper.set_value(Scheduling::OfThisThread()); };
  ASSERT_TRUE(pool.SubmitIfIdle(std::move(helper)));
  const Scheduling helpers = of_helper.get_future().get();
  pool.Drain();
  JobPool other({.threads = 1, .queue_max = 1, .nice = 3});
  ASSERT_TRUE(other.Submit([&of_job] { of_job.set_value(Scheduling::OfThisThread()); }).ok());
  for (const Scheduling& seen : {of_job.get_future().get(), helpers}) {
    EXPECT_EQ(seen.nice, std::min(19, own.nice + 3));
    if (own.slice_ns > 0) {
      EXPECT_GT(seen.slice_ns, 4 * own.slice_ns);
    }
  }
}

TEST(JobPoolTest, OneThreadStartsJobsInOrderOfSubmission) {
  std::vector<int> order;
  Gate gate;
  {
    JobPool pool({.threads = 1, .queue_max = 100});
    const OpenAtEnd open(gate);
    ASSERT_TRUE(pool.Submit([&] { gate.Wait(); }).ok());
    for (int i = 0; i < 100; ++i)
      ASSERT_TRUE(pool.Submit([&order, i] { order.push_back(i); }).ok());
    gate.Open();
  }
  std::vector<int> expected(100);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
}

TEST(JobPoolTest, TakesExactlyTheRunningAndTheWaiting) {
  // Submitted faster than threads wake up, or slower: the number taken must not depend on it.
  for (int round = 0; round < 200; ++round) {
    Gate gate;
    JobPool pool({.threads = 2, .queue_max = 3});
    const OpenAtEnd open(gate);
    int taken = 0;
    while (taken < 100 && pool.Submit([&] { gate.Wait(); }).ok()) ++taken;
    EXPECT_EQ(taken, 2 + 3);
    gate.Open();
    pool.Drain();
  }
}

TEST(JobPoolTest, AQueueOfNoneStillUsesIdleThreads) {
  Gate gate;
  JobPool pool({.threads = 2, .queue_max = 0});
  const OpenAtEnd open(gate);
  EXPECT_TRUE(pool.Submit([&] { gate.Wait(); }).ok());
  EXPECT_TRUE(pool.Submit([&] { gate.Wait(); }).ok());
  EXPECT_EQ(pool.Submit([] {}).code(), absl::StatusCode::kResourceExhausted);
  gate.Open();
}

TEST(JobPoolTest, AFullQueueSaysWhenToRetryAndWhichLimit) {
  Gate gate;
  JobPool pool({.threads = 1, .queue_max = 1});
  const OpenAtEnd open(gate);
  ASSERT_TRUE(pool.Submit([&] { gate.Wait(); }).ok());
  ASSERT_TRUE(pool.Submit([] {}).ok());
  const absl::Status refused = pool.Submit([] {});
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  const ErrorDetails details = DetailsOf(refused);
  EXPECT_EQ(details.reason, "QUEUE_FULL");
  EXPECT_EQ(details.retry_delay_ms, 100);
  EXPECT_EQ(details.quota_subject, "queue_max");
  EXPECT_EQ(details.metadata.at("queue_max"), "1");
  gate.Open();
}

TEST(JobPoolTest, InAFullQueueAClientWithLessWaitingTakesThePlaceOfOneWithMore) {
  CountingObserver observer;
  Gate gate;
  JobPool pool({.threads = 1, .queue_max = 3, .observer = &observer});
  const OpenAtEnd open(gate);
  ASSERT_TRUE(pool.Submit([&] { gate.Wait(); }).ok());
  std::vector<absl::Status> greedy(4, absl::UnknownError("not called"));
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(
        pool.Submit({.client = "greedy"}, [&, i](const absl::Status& taken) { greedy[i] = taken; })
            .ok());
  EXPECT_FALSE(
      pool.Submit({.client = "greedy"}, [&](const absl::Status& taken) { greedy[3] = taken; })
          .ok());
  absl::Status modest = absl::UnknownError("not called");
  ASSERT_TRUE(
      pool.Submit({.client = "modest"}, [&](const absl::Status& taken) { modest = taken; }).ok());
  EXPECT_EQ(DetailsOf(greedy[2]).reason, "QUEUE_FULL");
  EXPECT_EQ(DetailsOf(greedy[2]).metadata.count("queue_seconds"), 1);
  EXPECT_GT(DetailsOf(greedy[2]).retry_delay_ms, 0);
  gate.Open();
  pool.Drain();
  EXPECT_TRUE(greedy[0].ok());
  EXPECT_TRUE(greedy[1].ok());
  EXPECT_TRUE(modest.ok());
  EXPECT_EQ(greedy[3].code(), absl::StatusCode::kUnknown);
  EXPECT_EQ(observer.dropped, 1);
  EXPECT_EQ(observer.done, 4);
}

TEST(JobPoolTest, JobsThatNobodyWantsAnyMoreLeaveTheQueueByThemselves) {
  Gate gate;
  JobPool pool({.threads = 1, .queue_max = 1});
  const OpenAtEnd open(gate);
  ASSERT_TRUE(pool.Submit([&] { gate.Wait(); }).ok());
  std::atomic<bool> is_abandoned{false};
  std::promise<absl::Status> abandoned;
  ASSERT_TRUE(pool.Submit(
                      {}, [&](const absl::Status& taken) { abandoned.set_value(taken); },
                      [&] { return is_abandoned.load(); })
                  .ok());
  EXPECT_FALSE(pool.Submit([] {}).ok());
  is_abandoned = true;
  EXPECT_EQ(abandoned.get_future().get().code(), absl::StatusCode::kCancelled);
  while (!pool.Submit([] {}).ok()) std::this_thread::yield();
}

TEST(JobPoolTest, AJobThatStillWaitsAtItsEndIsCalledWithThat) {
  FakeClock clock;
  Gate gate;
  JobPool pool({.threads = 1, .queue_max = 2, .clock = &clock});
  const OpenAtEnd open(gate);
  ASSERT_TRUE(pool.Submit([&] { gate.Wait(); }).ok());
  std::promise<absl::Status> ended;
  ASSERT_TRUE(pool.Submit({.end_ns = 5'000'000'000},
                          [&](const absl::Status& taken) { ended.set_value(taken); })
                  .ok());
  absl::Status other = absl::UnknownError("not called");
  ASSERT_TRUE(
      pool.Submit({.end_ns = 7'000'000'000}, [&](const absl::Status& taken) { other = taken; })
          .ok());
  clock.Advance(5'000'000'000);
  EXPECT_EQ(ended.get_future().get().code(), absl::StatusCode::kDeadlineExceeded);
  gate.Open();
  pool.Drain();
  EXPECT_TRUE(other.ok()) << other;
}

TEST(JobPoolTest, AJobWhoseDeadlineIsBehindWhatWaitsIsRefusedAtOnce) {
  FakeClock clock;
  Gate gate;
  std::promise<void> runs;
  JobPool pool({.threads = 1, .queue_max = 10, .clock = &clock});
  const OpenAtEnd open(gate);
  ASSERT_TRUE(pool.Submit({.expected_seconds = 10},
                          [&](const absl::Status&) {
                            runs.set_value();
                            gate.Wait();
                          })
                  .ok());
  runs.get_future().wait();
  const absl::Status refused = pool.Submit({.expected_seconds = 1, .deadline_ns = 5'000'000'000},
                                           [](const absl::Status&) { FAIL() << "called"; });
  EXPECT_EQ(DetailsOf(refused).reason, "DEADLINE_UNREACHABLE");
  clock.Advance(8'000'000'000);  // two seconds are left of the first
  EXPECT_TRUE(pool.Submit({.expected_seconds = 1, .deadline_ns = 13'000'000'000},
                          [](const absl::Status&) {})
                  .ok());
}

// Both answers are of the same pool at the same instant.
TEST(JobPoolTest, ARefusalIsWhatSubmitWouldAnswer) {
  int refused = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto draw = [&](int most) {
      return static_cast<int>(random() % static_cast<uint32_t>(most + 1));
    };
    FakeClock clock;
    Gate gate;
    JobPool pool(
        {.threads = 1, .queue_max = 4, .queue_seconds_max = seed % 2 * 8.0, .clock = &clock});
    const OpenAtEnd open(gate);
    std::promise<void> runs;
    ASSERT_TRUE(pool.Submit({.expected_seconds = 3},
                            [&](const absl::Status&) {
                              runs.set_value();
                              gate.Wait();
                            })
                    .ok());
    runs.get_future().wait();
    for (int i = 0; i < 12; ++i) {
      JobTicket ticket{.client = std::string(1, static_cast<char>('a' + draw(2))),
                       .expected_seconds = static_cast<double>(draw(4))};
      if (draw(1) == 0) ticket.deadline_ns = clock.MonotonicNs() + 1'000'000'000LL * draw(30);
      const absl::Status before = pool.Refusal(ticket);
      const absl::Status submitted = pool.Submit(ticket, [](const absl::Status&) {});
      ASSERT_EQ(before.code(), submitted.code()) << "seed " << seed << ": " << submitted;
      ASSERT_EQ(DetailsOf(before).reason, DetailsOf(submitted).reason) << "seed " << seed;
      refused += before.ok() ? 0 : 1;
    }
  }
  EXPECT_GT(refused, 500);
}

TEST(JobPoolTest, ARefusalIsToldToTheObserverAndTakesNoPlace) {
  CountingObserver observer;
  Gate gate;
  JobPool pool({.threads = 1, .queue_max = 1, .observer = &observer});
  const OpenAtEnd open(gate);
  ASSERT_TRUE(pool.Submit([&] { gate.Wait(); }).ok());
  EXPECT_TRUE(pool.Refusal({}).ok());
  ASSERT_TRUE(pool.Submit([] {}).ok());
  EXPECT_EQ(DetailsOf(pool.Refusal({})).reason, "QUEUE_FULL");
  EXPECT_EQ(observer.refused, 1);
}

TEST(JobPoolTest, LimitsThatChangeHoldForWhatComesNext) {
  Gate gate;
  JobPool pool({.threads = 1, .queue_max = 0});
  const OpenAtEnd open(gate);
  ASSERT_TRUE(pool.Submit([&] { gate.Wait(); }).ok());
  EXPECT_FALSE(pool.Submit([] {}).ok());
  pool.SetLimits(1, 0);
  EXPECT_TRUE(pool.Submit([] {}).ok());
  const absl::Status refused = pool.Submit([] {});
  EXPECT_EQ(DetailsOf(refused).metadata.at("queue_max"), "1");
}

TEST(JobPoolTest, ListsWhatRunsAndWhatWaitsTheOldestFirst) {
  FakeClock clock;
  Gate gate;
  std::promise<void> runs;
  JobPool pool({.threads = 1, .queue_max = 10, .clock = &clock});
  const OpenAtEnd open(gate);
  ASSERT_TRUE(pool.Submit({.client = "a", .method = "M", .request_id = "1", .expected_seconds = 4},
                          [&](const absl::Status&) {
                            runs.set_value();
                            gate.Wait();
                          })
                  .ok());
  runs.get_future().wait();
  clock.Advance(2'000'000'000);
  ASSERT_TRUE(pool.Submit({.client = "b"}, [](const absl::Status&) {}).ok());
  clock.Advance(1'000'000'000);
  const std::vector<JobListing> jobs = pool.List();
  ASSERT_EQ(jobs.size(), 2);
  EXPECT_EQ(jobs[0].ticket.client, "a");
  EXPECT_EQ(jobs[0].ticket.method, "M");
  EXPECT_EQ(jobs[0].ticket.request_id, "1");
  EXPECT_TRUE(jobs[0].is_running);
  EXPECT_DOUBLE_EQ(jobs[0].age_seconds, 3);
  EXPECT_EQ(jobs[1].ticket.client, "b");
  EXPECT_FALSE(jobs[1].is_running);
  EXPECT_DOUBLE_EQ(jobs[1].age_seconds, 1);
  gate.Open();
  pool.Drain();
  EXPECT_TRUE(pool.List().empty());
}

TEST(JobPoolTest, TakesJobsAgainOnceThereIsRoom) {
  Gate gate;
  std::promise<void> done;
  JobPool pool({.threads = 1, .queue_max = 1});
  const OpenAtEnd open(gate);
  ASSERT_TRUE(pool.Submit([&] { gate.Wait(); }).ok());
  ASSERT_TRUE(pool.Submit([&] { done.set_value(); }).ok());
  ASSERT_FALSE(pool.Submit([] {}).ok());
  gate.Open();
  done.get_future().wait();
  EXPECT_TRUE(pool.Submit([] {}).ok());
}

TEST(JobPoolTest, ARefusedJobIsDestroyedWithoutRunning) {
  Gate gate;
  JobPool pool({.threads = 1, .queue_max = 0});
  const OpenAtEnd open(gate);
  ASSERT_TRUE(pool.Submit([&] { gate.Wait(); }).ok());
  bool ran = false;
  auto held = std::make_shared<int>(0);
  const std::weak_ptr<int> watched = held;
  EXPECT_FALSE(pool.Submit([&ran, held = std::move(held)] { ran = true; }).ok());
  EXPECT_TRUE(watched.expired());
  gate.Open();
  pool.Drain();
  EXPECT_FALSE(ran);
}

TEST(JobPoolTest, DrainRunsWhatWaitsAndDestroysIt) {
  Gate gate;
  std::atomic<int> ran{0};
  auto held = std::make_shared<int>(0);
  const std::weak_ptr<int> watched = held;
  JobPool pool({.threads = 2, .queue_max = 20});
  const OpenAtEnd open(gate);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(pool.Submit([&gate, &ran, held] {
                      gate.Wait();
                      ++ran;
                    })
                    .ok());
  }
  held.reset();
  gate.Open();
  pool.Drain();
  EXPECT_EQ(ran, 20);
  EXPECT_TRUE(watched.expired());
}

TEST(JobPoolTest, RefusesAfterDrainBegan) {
  JobPool pool({});
  pool.Drain();
  pool.Drain();
  const absl::Status refused = pool.Submit([] { FAIL() << "ran after Drain"; });
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(DetailsOf(refused).reason, "SHUTTING_DOWN");
  EXPECT_GT(DetailsOf(refused).retry_delay_ms, 0);
}

TEST(JobPoolTest, AJobThatSubmitsDuringDrainIsRefusedNotStuck) {
  absl::Status inner;
  Gate gate;
  JobPool pool({.threads = 1});
  const OpenAtEnd open(gate);
  ASSERT_TRUE(pool.Submit([&] {
                    gate.Wait();
                    while (inner.ok()) inner = pool.Submit([] {});
                  })
                  .ok());
  std::thread drain([&] { pool.Drain(); });
  gate.Open();
  drain.join();
  EXPECT_THAT(DetailsOf(inner).reason, testing::AnyOf("SHUTTING_DOWN", "QUEUE_FULL"));
}

TEST(JobPoolTest, TheObserverLearnsHowLongAJobWaitedAndRan) {
  FakeClock clock;
  CountingObserver observer;
  Gate first_may_end;
  std::promise<void> first_runs;
  JobPool pool({.threads = 1, .queue_max = 1, .observer = &observer, .clock = &clock});
  const OpenAtEnd open(first_may_end);
  ASSERT_TRUE(pool.Submit([&] {
                    first_runs.set_value();
                    first_may_end.Wait();
                  })
                  .ok());
  first_runs.get_future().wait();
  ASSERT_TRUE(pool.Submit([&] { clock.Advance(3'000'000'000); }).ok());
  EXPECT_FALSE(pool.Submit([] {}).ok());
  clock.Advance(2'000'000'000);
  first_may_end.Open();
  pool.Drain();
  EXPECT_EQ(observer.queued, 2);
  EXPECT_EQ(observer.refused, 1);
  EXPECT_EQ(observer.started, 2);
  EXPECT_EQ(observer.done, 2);
  EXPECT_DOUBLE_EQ(observer.wait_seconds, 2);
  EXPECT_DOUBLE_EQ(observer.run_seconds, 3);
}

TEST(JobPoolTest, UnderManySubmittersEveryTakenJobRunsAndNoRefusedOneDoes) {
  constexpr int kSubmitters = 8;
  constexpr int kJobs = 2000;
  CountingObserver observer;
  std::atomic<int> taken{0};
  std::atomic<int> ran{0};
  std::atomic<int> alive{0};
  {
    JobPool pool({.threads = 4, .queue_max = 8, .observer = &observer});
    std::vector<std::thread> submitters;
    submitters.reserve(kSubmitters);
    for (int i = 0; i < kSubmitters; ++i) {
      submitters.emplace_back([&] {
        for (int job = 0; job < kJobs; ++job) {
          ++alive;
          const std::shared_ptr<void> token(nullptr, [&alive](void*) { --alive; });
          if (pool.Submit([&ran, token] { ++ran; }).ok()) ++taken;
        }
      });
    }
    submitters.front().join();
    submitters.erase(submitters.begin());
    std::thread drain([&] { pool.Drain(); });  // while the others still submit
    for (std::thread& submitter : submitters) submitter.join();
    drain.join();
  }
  EXPECT_GT(taken, 0);
  EXPECT_EQ(ran, taken);
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(observer.started, taken);
  EXPECT_EQ(observer.done, taken);
  EXPECT_EQ(observer.queued, taken);
  EXPECT_EQ(observer.refused, kSubmitters * kJobs - taken);
}

}  // namespace
}  // namespace stepcast::server::job_pool_test
