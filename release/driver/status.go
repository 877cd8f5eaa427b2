package driver

import "slices"

// Status is how far a release has come. The words are Helm's.
type Status string

// The statuses.
const (
	StatusUnknown         Status = "unknown"
	StatusDeployed        Status = "deployed"
	StatusUninstalled     Status = "uninstalled"
	StatusSuperseded      Status = "superseded"
	StatusFailed          Status = "failed"
	StatusUninstalling    Status = "uninstalling"
	StatusPendingInstall  Status = "pending-install"
	StatusPendingUpgrade  Status = "pending-upgrade"
	StatusPendingRollback Status = "pending-rollback"
)

// Statuses returns all statuses.
func Statuses() []Status {
	return []Status{
		StatusUnknown, StatusDeployed, StatusUninstalled, StatusSuperseded, StatusFailed,
		StatusUninstalling, StatusPendingInstall, StatusPendingUpgrade, StatusPendingRollback,
	}
}

// Valid tells whether s is one of the statuses.
func (s Status) Valid() bool { return slices.Contains(Statuses(), s) }

// Pending tells whether something is being done to the release.
func (s Status) Pending() bool {
	return s == StatusPendingInstall || s == StatusPendingUpgrade || s == StatusPendingRollback
}
