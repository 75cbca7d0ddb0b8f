#include "server/store/sqlite_connection_pool.h"

#include <utility>

namespace stepcast::server {

SqliteConnectionPool::Lease::Lease(SqliteConnectionPool& pool,
                                   std::unique_ptr<SqliteConnection> connection)
    : pool_(pool), connection_(std::move(connection)) {}

SqliteConnectionPool::Lease::~Lease() {
  {
    MutexLock lock(pool_.mutex_);
    pool_.free_.push_back(std::move(connection_));
  }
  pool_.returned_.NotifyOne();
}

SqliteConnectionPool::Lease SqliteConnectionPool::Take() {
  MutexLock lock(mutex_);
  while (free_.empty()) returned_.Wait(mutex_);
  std::unique_ptr<SqliteConnection> connection = std::move(free_.back());
  free_.pop_back();
  return {*this, std::move(connection)};
}

}  // namespace stepcast::server
