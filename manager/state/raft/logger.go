package raft

import (
	"context"
	"fmt"
	"log/slog"

	etcdraft "go.etcd.io/raft/v3"
)

// raftLogger hands raft's own log lines to slog. Most of what raft calls information is of use
// to nobody but its authors, so it goes to the debug level.
type raftLogger struct{ log *slog.Logger }

var _ etcdraft.Logger = raftLogger{}

func (l raftLogger) line(level slog.Level, text string) {
	l.log.Log(context.Background(), level, text)
}

func (l raftLogger) Debug(v ...any)              { l.line(slog.LevelDebug, fmt.Sprint(v...)) }
func (l raftLogger) Debugf(f string, v ...any)   { l.line(slog.LevelDebug, fmt.Sprintf(f, v...)) }
func (l raftLogger) Info(v ...any)               { l.line(slog.LevelDebug, fmt.Sprint(v...)) }
func (l raftLogger) Infof(f string, v ...any)    { l.line(slog.LevelDebug, fmt.Sprintf(f, v...)) }
func (l raftLogger) Warning(v ...any)            { l.line(slog.LevelWarn, fmt.Sprint(v...)) }
func (l raftLogger) Warningf(f string, v ...any) { l.line(slog.LevelWarn, fmt.Sprintf(f, v...)) }
func (l raftLogger) Error(v ...any)              { l.line(slog.LevelError, fmt.Sprint(v...)) }
func (l raftLogger) Errorf(f string, v ...any)   { l.line(slog.LevelError, fmt.Sprintf(f, v...)) }

// Fatal and Panic are raft's assertions: after one, its state is not to be trusted.
func (l raftLogger) Fatal(v ...any)            { panic("raft: " + fmt.Sprint(v...)) }
func (l raftLogger) Fatalf(f string, v ...any) { panic("raft: " + fmt.Sprintf(f, v...)) }
func (l raftLogger) Panic(v ...any)            { panic("raft: " + fmt.Sprint(v...)) }
func (l raftLogger) Panicf(f string, v ...any) { panic("raft: " + fmt.Sprintf(f, v...)) }

// Logger hands the log lines of the raft library to log.
func Logger(log *slog.Logger) etcdraft.Logger { return raftLogger{log} }
