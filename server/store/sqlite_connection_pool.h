// A fixed number of connections that threads borrow in turn.
//
// Threads: safe. Take waits while all are lent; it cannot wait for ever, since a lease covers one
// operation.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "server/base/mutex.h"
#include "server/store/sqlite_connection.h"

namespace stepcast::server {

class SqliteConnectionPool {
 public:
  // A lease of a connection, which it gives back at the end of a scope. The pool must outlive it.
  class Lease {
   public:
    Lease(SqliteConnectionPool& pool, std::unique_ptr<SqliteConnection> connection);
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    SqliteConnection& operator*() const { return *connection_; }

   private:
    SqliteConnectionPool& pool_;
    std::unique_ptr<SqliteConnection> connection_;
  };

  // REQUIRES: !connections.empty().
  explicit SqliteConnectionPool(std::vector<std::unique_ptr<SqliteConnection>> connections)
      : free_(std::move(connections)) {}

  Lease Take();

 private:
  Mutex mutex_;
  CondVar returned_;
  std::vector<std::unique_ptr<SqliteConnection>> free_ STEPCAST_GUARDED_BY(mutex_);
};

}  // namespace stepcast::server
