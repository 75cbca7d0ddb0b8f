"""The targets, and the files of each whose lines count as its decoder's."""

_PROFILE = ["server/convert/profile_codec.cc", "server/convert/profile_convert.cc", "core/model/validate_profile.cc", "core/model/validate_steps.cc",
            "core/model/dependency_cycle.cc"]
_STEPS = ["core/importing/tensorflow/recorded_rows.cc", "core/importing/common/recording_import.cc", "core/importing/tensorflow/tensorflow_graph.cc"]
_RECORDING = _STEPS + ["core/importing/tensorflow/recorded_operations.cc"]
_WIRE = ["core/importing/common/wire_reader.cc"]
_JSON = ["core/importing/common/json_reader.cc"]

DECODERS = {
    "admission_review": ["deploy/kubernetes/admission/job_advice.cc", "deploy/kubernetes/admission/review.cc", "deploy/kubernetes/admission/training_job.cc"],
    "certificate": ["server/security/certificate.cc"],
    "client_profile": ["client/src/profile_encoding.cc", "client/src/json.cc"],
    "client_text": ["client/cli/input_files.cc", "client/cli/flags/quantity.cc"],
    "collective_benchmark": ["core/importing/benchmarks/benchmark_log.cc", "core/importing/benchmarks/benchmark_sections.cc", "core/importing/benchmarks/collective_benchmark.cc"] + _JSON,
    "command_line": ["server/app/server_options.cc", "server/app/listen_address.cc"],
    "chakra": ["core/importing/chakra/chakra_reader.cc", "core/importing/chakra/chakra_trace.cc"] + _WIRE + _JSON,
    "configuration": ["server/app/settings.cc"],
    "conversation": ["server/rpc/grpc_wire.cc", "server/rpc/health_rpc.cc", "server/rpc/operations_rpc.cc", "server/rpc/reflection_rpc.cc", "server/rpc/calls.cc",
                     "server/rpc/calls.h", "server/rpc/upload_content.cc"],
    "graph_def": _RECORDING + _WIRE,
    "horovod": ["core/importing/horovod/horovod_timeline.cc"] + _JSON,
    "layer_profile": ["core/importing/layers/layer_graph.cc", "core/importing/layers/layer_profile.cc", "core/importing/layers/layer_table.cc"],
    "listing": ["server/handlers/listing.cc", "server/handlers/request_checks.cc", "server/store/profile_store.cc"],
    "message_bytes": ["server/rpc/grpc_wire.cc"],
    "operation_request": ["server/convert/operation_convert.cc", "server/handlers/operation_handler.cc", "server/rpc/operations_rpc.cc"],
    "prediction_request": [
        "server/convert/prediction_convert.cc", "server/convert/search_convert.cc", "server/convert/scenario_convert.cc", "server/handlers/prediction_handler.cc", "core/model/scenario.cc",
        "core/model/simulation_options.cc", "core/allocate/allocation_query.cc", "core/predict/order.cc",
        "core/recommend/recommendation_query.cc"],
    "principals": ["server/security/principals.cc"],
    "profile_request": ["server/convert/profile_convert.cc", "server/handlers/profile_handler.cc", "server/handlers/request_checks.cc",
                        "server/handlers/import_formats.cc"],
    "profile_upload": _PROFILE + ["server/convert/utf8.cc"],
    "pytorch": ["core/importing/pytorch/gradient_buckets.cc", "core/importing/pytorch/pytorch_content.cc", "core/importing/pytorch/pytorch_reader.cc", "core/importing/pytorch/pytorch_steps.cc", "core/importing/pytorch/pytorch_trace.cc", "core/importing/common/time_spans.cc"] + _JSON,
    "pytorch_ranks": ["core/replay/clock_alignment.cc", "core/replay/recorded_job.cc", "core/importing/pytorch/pytorch_ranks.cc", "core/model/multi_rank_recording.cc", "core/model/validate_steps.cc"],
    "run_metadata": _RECORDING + _WIRE + ["core/importing/tensorflow/run_metadata_profile.cc", "core/importing/tensorflow/tensorflow_readers.cc"],
    "stored_profile": _PROFILE,
    "submission": ["client/src/advice.cc", "deploy/slurm/submission.cc", "deploy/slurm/settings.cc"],
    "timeline": _STEPS + ["core/importing/tensorflow/timeline_profile.cc", "core/importing/tensorflow/tensorflow_readers.cc"] + _JSON,
    "wire_status": ["client/src/error_status.cc"],
}
