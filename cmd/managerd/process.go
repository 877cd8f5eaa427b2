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

// How far the heap may grow over what is live, in percent, before it is collected.
const (
	// What is loaded at the start stays. Collected often, it lies close together, and what is
	// dead of it does not hold pages for as long as the process lives.
	gcLoading = 20
	// What a write allocates is dead soon after, and collecting it less often is worth the
	// memory.
	gcServing = 400
)

// tuneMemory sets the collector for loading, unless GOGC or GOMEMLIMIT say otherwise; loaded
// sets it for serving. The limit, half of the machine's memory, makes it collect more often
// before memory runs out.
func tuneMemory() (loaded func(), err error) {
	loaded = func() {}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcLoading)
		loaded = func() { debug.SetGCPercent(gcServing) }
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		var info unix.Sysinfo_t
		if err := unix.Sysinfo(&info); err != nil {
			return nil, err
		}
		debug.SetMemoryLimit(int64(info.Totalram * uint64(info.Unit) / 2)) //nolint:gosec // half of the memory
	}
	return loaded, nil
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
