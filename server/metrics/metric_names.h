// The name of every metric of the server. Names and labels are an interface: dashboards and alerts
// depend on them.
//
// Names of gRPC's are go-grpc-prometheus's, those of the process are the Prometheus client
// libraries', so that public dashboards work.
#pragma once

namespace stepcast::server::metric {

inline constexpr char kGrpcStarted[] = "grpc_server_started_total";
inline constexpr char kGrpcHandled[] = "grpc_server_handled_total";
inline constexpr char kGrpcMessagesReceived[] = "grpc_server_msg_received_total";
inline constexpr char kGrpcMessagesSent[] = "grpc_server_msg_sent_total";
inline constexpr char kGrpcHandlingSeconds[] = "grpc_server_handling_seconds";

inline constexpr char kQueueLength[] = "stepcast_queue_length";
inline constexpr char kQueueWaitSeconds[] = "stepcast_queue_wait_seconds";
inline constexpr char kJobsRunning[] = "stepcast_jobs_running";
inline constexpr char kJobsRefused[] = "stepcast_jobs_refused_total";
inline constexpr char kJobsDropped[] = "stepcast_jobs_dropped_total";
inline constexpr char kJobSeconds[] = "stepcast_job_seconds";

inline constexpr char kRejections[] = "stepcast_rejections_total";

inline constexpr char kStoreOperationSeconds[] = "stepcast_store_operation_seconds";
inline constexpr char kStoreProfiles[] = "stepcast_store_profiles";
inline constexpr char kStoreProfilesMax[] = "stepcast_store_profiles_max";
inline constexpr char kStoreDiskFull[] = "stepcast_store_disk_full";
inline constexpr char kStoreDiskFreeBytes[] = "stepcast_store_disk_free_bytes";
inline constexpr char kStoreDiskBytes[] = "stepcast_store_disk_bytes";

inline constexpr char kOperations[] = "stepcast_operations";
inline constexpr char kOperationQueueAge[] = "stepcast_operation_queue_age_seconds";
inline constexpr char kOperationShards[] = "stepcast_operation_shards";
inline constexpr char kOperationAttempts[] = "stepcast_operation_attempts_total";
inline constexpr char kOperationAttemptsEnded[] = "stepcast_operation_attempts_ended_total";

inline constexpr char kPredictions[] = "stepcast_predictions_total";
inline constexpr char kUnsteadyPredictions[] = "stepcast_unsteady_predictions_total";
inline constexpr char kSimulationSeconds[] = "stepcast_simulation_seconds";
inline constexpr char kSimulatedOperations[] = "stepcast_simulated_operations_total";

inline constexpr char kSharedAnswers[] = "stepcast_shared_answers_total";
inline constexpr char kCacheLookups[] = "stepcast_cache_lookups_total";
inline constexpr char kCacheEvictions[] = "stepcast_cache_evictions_total";
inline constexpr char kCacheEntries[] = "stepcast_cache_entries";
inline constexpr char kCacheBytes[] = "stepcast_cache_bytes";

inline constexpr char kCertificateExpirySeconds[] = "stepcast_tls_certificate_expiry_seconds";
inline constexpr char kReloads[] = "stepcast_reloads_total";

inline constexpr char kBuildInfo[] = "stepcast_build_info";

inline constexpr char kProcessCpuSeconds[] = "process_cpu_seconds_total";
inline constexpr char kProcessResidentBytes[] = "process_resident_memory_bytes";
inline constexpr char kProcessVirtualBytes[] = "process_virtual_memory_bytes";
inline constexpr char kProcessOpenFds[] = "process_open_fds";
inline constexpr char kProcessMaxFds[] = "process_max_fds";
inline constexpr char kProcessStartSeconds[] = "process_start_time_seconds";

}  // namespace stepcast::server::metric
