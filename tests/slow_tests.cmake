# Tests that `./dev test --fast` leaves out: each took more than ten seconds on two cores. `./dev test` prints the ten slowest.
set(STEPCAST_SLOW_TESTS
  FuzzReplay.conversation
  bottleneck_agreement_test
  certainty_coverage_test.1
  certainty_coverage_test.2
  certainty_coverage_test.3
  client_package_test
  deploy.admission.GoldenTest
  deploy.admission.HostileTest
  deploy.admission.KubectlTest
  deploy.admission.PredictorTest
  deploy.admission.TlsTest
  deploy.kubectl_stepcast.ExplainTest
  deploy.kubectl_stepcast.RecommendTest
  deploy.kubernetes.KustomizeTest
  deploy.rules.RulesTest
  deploy.schemas.KubernetesSchemaTest
  deploy.service_config.SuddenStopTest
  deploy.service_config.TwoServersTest
  deploy.settings.SettingsTest
  deploy.slurm.AwayTest
  deploy.slurm.CliFilterTest
  deploy.slurm.SetTest
  dev.HelpTest
  docs.CommandsTest
  e2e.abuse.AbuseTest
  e2e.admin.AdminTest
  e2e.all_reduce.AllReduceTest
  e2e.allocate.AllocateTest
  e2e.bad_files.BadFilesTest
  e2e.bench.BenchTest
  e2e.broken_upload.BrokenUploadTest
  e2e.buf_curl.BufCurlTest
  e2e.calibration.CollectivesTest
  e2e.certainty.CertaintyTest
  e2e.cluster.ClusterTest
  e2e.compare.CompareTest
  e2e.conversation.ReflectionTest
  e2e.conversation.StreamsTest
  e2e.crash.CrashTest
  e2e.diagnose.DiagnoseTest
  e2e.examples.ExamplesTest
  e2e.front_door.FrontDoorTest
  e2e.golden.GoldenTest
  e2e.grpcio.PredictionsTest
  e2e.grpcio.ProfilesTest
  e2e.help.HelpTest
  e2e.import_recording.ImportRecordingTest
  e2e.job_change.JobChangeTest
  e2e.job_command.ComputedJobTest
  e2e.job_command.QueuedJobTest
  e2e.layout.RecommendLayoutTest
  e2e.operations.ComputedTest
  e2e.operations.QueuedTest
  e2e.optimize.OptimizeTest
  e2e.order.OrderTest
  e2e.overload.OverloadTest
  e2e.pipeline.PipelineTest
  e2e.pipeline_methods.AllocateTest
  e2e.pipeline_methods.RecommendTest
  e2e.postgres.ReplicasTest
  e2e.postgres.StartTest
  e2e.quota.QuotaTest
  e2e.recommend.RecommendTest
  e2e.recordings.RecordingsTest
  e2e.regimes.RegimesTest
  e2e.replace.ReplaceTest
  e2e.report.BrowserTest
  e2e.report.CommandTest
  e2e.report.PageTest
  e2e.scenario_kinds.KindOfJobTest
  e2e.security.RefusalTest
  e2e.security.ReloadTest
  e2e.sharing.SharingTest
  e2e.sharing_jobs.SharedJobTest
  e2e.store_faults.StoreFaultTest
  e2e.summed.SummedTest
  e2e.sync.SyncTest
  e2e.tls_mistakes.MistakesTest
  e2e.trace.TraceTest
  e2e.training_plan.TrainingPlanTest
  e2e.tune.TuneTest
  endurance.chaos.ChaosTest
  endurance.soak.SoakTest
  exhaustive_comparison_test
  import_memory_test
  import_mutation_test
  interval_coverage_test.1
  interval_coverage_test.2
  naive_comparison_test.1
  naive_comparison_test.2
  parsing_overhead_test
  phased_comparison_test
  server_store_postgres_test
  server_store_test
  server_strategies_test
  stepcast_client_program_test
  testbed.ddp.RecordedTest
  testbed.ddp.SweepTest
  testbed.pp.LiveTest
  throughput_test)

# Those of more than a minute, which begin first, so that none runs on alone at the end.
set(STEPCAST_LONGEST_TESTS
  certainty_coverage_test.1
  certainty_coverage_test.2
  certainty_coverage_test.3
  e2e.operations.ComputedTest
  e2e.report.BrowserTest
  e2e.sharing_jobs.SharedJobTest
  interval_coverage_test.1
  interval_coverage_test.2
  naive_comparison_test.1
  naive_comparison_test.2
  parsing_overhead_test
  server_strategies_test
  stepcast_client_program_test)

# stepcast_label(TEST): labels a test of this folder `slow` or `fast`.
function(stepcast_label test)
  if(test IN_LIST STEPCAST_SLOW_TESTS)
    set_tests_properties(${test} PROPERTIES LABELS slow COST 1)
    set_property(GLOBAL APPEND PROPERTY STEPCAST_LABELLED_SLOW ${test})
  else()
    set_tests_properties(${test} PROPERTIES LABELS fast)
  endif()
  if(test IN_LIST STEPCAST_LONGEST_TESTS)
    set_tests_properties(${test} PROPERTIES COST 2)
  endif()
endfunction()

# stepcast_check_slow_tests(): fails for a name of the list that no test has.
function(stepcast_check_slow_tests)
  get_property(labelled GLOBAL PROPERTY STEPCAST_LABELLED_SLOW)
  list(REMOVE_ITEM STEPCAST_SLOW_TESTS ${labelled})
  if(STEPCAST_SLOW_TESTS)
    message(SEND_ERROR "tests/slow_tests.cmake names tests that are not there: ${STEPCAST_SLOW_TESTS}")
  endif()
endfunction()
