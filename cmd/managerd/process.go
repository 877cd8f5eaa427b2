package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/sirupsen/logrus"
	etcdraft "go.etcd.io/raft/v3"
	"golang.org/x/sys/unix"

	"holdfast/manager/state/raft"
)

// gcPercent lets the heap grow to five times what is live: what a manager allocates for a
// write is dead soon after, and collecting it less often is worth the memory.
const gcPercent = 400

// tuneMemory sets the collector, unless GOGC or GOMEMLIMIT say otherwise. The limit, half of
// the machine's memory, makes it collect more often before memory runs out.
func tuneMemory() error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		var info unix.Sysinfo_t
		if err := unix.Sysinfo(&info); err != nil {
			return err
		}
		debug.SetMemoryLimit(int64(info.Totalram * uint64(info.Unit) / 2)) //nolint:gosec // half of the memory
	}
	return nil
}

// ownLogs hands the log lines of libraries that have a logger of their own to ours.
func ownLogs(log *slog.Logger) {
	etcdraft.SetLogger(raft.Logger(log))
	logrus.SetOutput(io.Discard)
	logrus.AddHook(logrusHook{log})
}

// logrusHook is for docker/go-events, which logs to logrus.
type logrusHook struct{ log *slog.Logger }

// Levels implements logrus.Hook.
func (h logrusHook) Levels() []logrus.Level { return logrus.AllLevels }

// Fire implements logrus.Hook.
func (h logrusHook) Fire(e *logrus.Entry) error {
	level := slog.LevelInfo
	switch {
	case e.Level <= logrus.ErrorLevel:
		level = slog.LevelError
	case e.Level == logrus.WarnLevel:
		level = slog.LevelWarn
	case e.Level >= logrus.DebugLevel:
		level = slog.LevelDebug
	}
	h.log.Log(context.Background(), level, e.Message)
	return nil
}
