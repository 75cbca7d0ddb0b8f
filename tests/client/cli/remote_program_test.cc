// The program and the library, against a real stepcastd.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "stepcast/client.h"
#include "stepcast/json.h"
#include "tests/client/support/program.h"
#include "tests/client/support/temporary_directory.h"
#include "tests/client/support/tiny_profile.h"
#include "tests/support/eventually.h"

namespace stepcast::client::remote_program_test {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

class RemoteProgramTest : public testing::Test {
 protected:
  Outcome Run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), STEPCAST_PROGRAM);
    return RunProgram(arguments, {{"STEPCAST_SERVER", server_.address()}});
  }
  Json RunJson(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--output", "json"});
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << testing::PrintToString(arguments) << outcome.err;
    return Json::parse(outcome.out, nullptr, /*allow_exceptions=*/false);
  }

  ServerProcess server_{STEPCAST_SERVER_PROGRAM};
  TemporaryDirectory directory_;
  std::string tiny_ = directory_.Write("tiny.json", ToJson(TinyProfile()));
};

TEST_F(RemoteProgramTest, AProfileLivesAndDies) {
  const Json stored = RunJson({"profile", "upload", tiny_, "--id", "tiny"});
  EXPECT_EQ(stored["name"], "profiles/tiny");
  EXPECT_EQ(RunJson({"profile", "upload", tiny_, "--id", "tiny"})["etag"], stored["etag"])
      << "the same content is one profile";
  EXPECT_EQ(RunJson({"profile", "get", "tiny"})["operations"].size(), 4);
  EXPECT_EQ(RunJson({"profile", "get", "profiles/tiny", "--basic"})["operations"].size(), 0);
  EXPECT_EQ(RunJson({"profile", "list"})["profiles"].size(), 1);
  const Outcome kept = Run({"profile", "delete", "tiny", "--etag", "other"});
  EXPECT_EQ(kept.exit_code, 1);
  EXPECT_THAT(kept.err, StartsWith("error: ABORTED: ETAG_MISMATCH: "));
  EXPECT_EQ(RunJson({"profile", "delete", "tiny", "--etag", stored["etag"]}), Json::object());
  const Outcome gone = Run({"profile", "get", "tiny"});
  EXPECT_EQ(gone.exit_code, 1);
  EXPECT_THAT(gone.err, StartsWith("error: NOT_FOUND: PROFILE_NOT_FOUND: "));
  EXPECT_THAT(gone.err, HasSubstr("profiles/tiny"));
}

// A free port of the loopback, at which nobody listens.
std::string AddressOfNobody() { return ServerProcess(STEPCAST_SERVER_PROGRAM).address(); }

// A channel sees that it is connected only while a call polls it: calls that fail at once, as those
// of a channel that could not connect do, would fail for ever. The server is another process, for
// one in this process would poll for both.
TEST(ReconnectionTest, CallsOneAtATimeReachAServerThatIsBack) {
  const std::string address = AddressOfNobody();
  const Client client({.server = address, .timeout = kHang, .retry = {.max_attempts = 1}});
  EXPECT_TRUE(absl::IsUnavailable(client.ListProfiles({}).status()));
  const ServerProcess back(STEPCAST_SERVER_PROGRAM, address);
  absl::Status status;
  const bool reached = Eventually([&] {
    status = client.ListProfiles({}).status();
    return !absl::IsUnavailable(status);
  });
  EXPECT_TRUE(reached && status.ok()) << status;
}

TEST_F(RemoteProgramTest, ListsPageByPageOrAll) {
  for (const char* model : {"alexnet", "vgg11", "resnet50"})
    RunJson({"profile", "zoo", model, "--bandwidth", "1Gbit/s", "--id", model});
  const Json page = RunJson({"profile", "list", "--page-size", "2"});
  ASSERT_EQ(page["profiles"].size(), 2);
  const Json rest =
      RunJson({"profile", "list", "--page-size", "2", "--page-token", page["nextPageToken"]});
  ASSERT_EQ(rest["profiles"].size(), 1);
  EXPECT_EQ(rest["profiles"][0]["name"], "profiles/vgg11");
  EXPECT_EQ(RunJson({"profile", "list"})["profiles"].size(), 3);
  EXPECT_EQ(RunJson({"profile", "list", "--filter", "model = \"vgg11\""})["profiles"].size(), 1);
  EXPECT_EQ(Run({"profile", "list", "--filter", "nonsense ="}).exit_code, 1);
}

TEST_F(RemoteProgramTest, AFileAndAStoredProfileAndLocalGiveTheSameAnswer) {
  RunJson({"profile", "upload", tiny_, "--id", "tiny"});
  const std::vector<std::string> flags{"--workers", "1-3", "--steps", "200", "--seed", "7"};
  const auto answer = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    Json json = RunJson(arguments);
    json.erase("simulation");  // how long it took
    return json;
  };
  const Json by_name = answer({"predict", "tiny"});
  ASSERT_EQ(by_name["predictions"].size(), 3);
  EXPECT_EQ(answer({"predict", tiny_}), by_name);
  EXPECT_EQ(answer({"predict", "profiles/tiny"}), by_name);
  EXPECT_EQ(answer({"--local", "predict", tiny_}), by_name);
}

TEST_F(RemoteProgramTest, ATraceIsTheSameFromHereAndThere) {
  const std::vector<std::string> flags{
      "trace", tiny_, "--workers", "3", "--staggered", "--multiplexing", "round-robin"};
  std::vector<std::string> local = flags;
  local.emplace_back("--local");
  const Outcome remote = Run(flags);
  EXPECT_EQ(remote.exit_code, 0) << remote.err;
  EXPECT_EQ(remote.out, Run(local).out);
  EXPECT_FALSE(Json::parse(remote.out)["traceEvents"].empty());
}

TEST_F(RemoteProgramTest, RecommendsAndOrders) {
  EXPECT_EQ(
      RunJson({"recommend", tiny_, "--max-workers", "3", "--steps", "100"})["frontier"].size(), 3);
  EXPECT_EQ(RunJson({"order", tiny_, "--method", "tac"})["orders"][0]["transfers"][0]["name"],
            "recv");
}

TEST_F(RemoteProgramTest, AnUploadOfAnyEncodingIsChecked) {
  EXPECT_EQ(Run({"profile", "check", tiny_}).exit_code, 0);
  EXPECT_EQ(RunJson({"profile", "list"})["profiles"].size(), 0) << "checking stores nothing";
  v1::Profile bad = TinyProfile();
  bad.mutable_operations(1)->set_waiting_for(0, 1);
  const Outcome refused = Run({"profile", "upload", directory_.Write("bad.json", ToJson(bad))});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("PROFILE_INVALID"));
  EXPECT_EQ(Run({"profile", "upload", directory_.Write("noise", "no profile")}).exit_code, 1);
}

TEST_F(RemoteProgramTest, TheFlagGoesBeforeTheEnvironment) {
  const Outcome outcome = Run({"--server", "127.0.0.1:1", "profile", "list"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, StartsWith("error: UNAVAILABLE: "));
  EXPECT_THAT(outcome.err, HasSubstr("hint: is the server running?"));
}

TEST_F(RemoteProgramTest, ServersAreNamedByHostAndPort) {
  for (const auto& [server, why] : std::vector<std::pair<std::string, std::string>>{
           {"https://localhost:50051", "leave https:// off, and say --tls"},
           {"http://localhost", "leave http:// off"},
           {"localhost", "has no port: write localhost:50051"},
           {"[::1]", "has no port: write [::1]:50051"},
           {"::1", "has no port: write [::1]:50051"}}) {
    const Outcome outcome = Run({"--server", server, "profile", "list"});
    EXPECT_EQ(outcome.exit_code, 2) << server;
    EXPECT_THAT(outcome.err, StartsWith("error: the server \"" + server + "\""));
    EXPECT_THAT(outcome.err, HasSubstr(why));
  }
  const std::string port = server_.address().substr(server_.address().rfind(':'));
  for (const std::string& server : {"localhost" + port, "dns:///localhost" + port})
    EXPECT_EQ(Run({"--server", server, "profile", "list"}).exit_code, 0) << server;
}

}  // namespace
}  // namespace stepcast::client::remote_program_test
