// Clang's thread-safety annotations, checked by -Wthread-safety; nothing to other compilers.
//
// Source: https://clang.llvm.org/docs/ThreadSafetyAnalysis.html
#pragma once

#if defined(__clang__)
#define STEPCAST_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define STEPCAST_THREAD_ANNOTATION(x)
#endif

#define STEPCAST_CAPABILITY(name) STEPCAST_THREAD_ANNOTATION(capability(name))
#define STEPCAST_SCOPED_CAPABILITY STEPCAST_THREAD_ANNOTATION(scoped_lockable)
// A member that is read and written only while the mutex is held.
#define STEPCAST_GUARDED_BY(mutex) STEPCAST_THREAD_ANNOTATION(guarded_by(mutex))
// A pointer whose target is read and written only while the mutex is held.
#define STEPCAST_PT_GUARDED_BY(mutex) STEPCAST_THREAD_ANNOTATION(pt_guarded_by(mutex))
// The caller must hold the mutex, or must not.
#define STEPCAST_REQUIRES(...) STEPCAST_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define STEPCAST_EXCLUDES(...) STEPCAST_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define STEPCAST_ACQUIRE(...) STEPCAST_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define STEPCAST_RELEASE(...) STEPCAST_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
// For code whose locking the analysis cannot follow.
#define STEPCAST_NO_THREAD_SAFETY_ANALYSIS STEPCAST_THREAD_ANNOTATION(no_thread_safety_analysis)
