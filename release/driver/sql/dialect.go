package sql

// Class says what an error of a database means.
type Class int

// The classes.
const (
	// Other is a fault: ours, or of the database.
	Other Class = iota
	// Unreachable: the connection could not be made, or broke.
	Unreachable
	// Retry: the database could not do it now, and did nothing.
	Retry
	// KeyTaken: a record with the key is there.
	KeyTaken
	// DeployedTaken: another revision is deployed.
	DeployedTaken
	// Full: the database has no room.
	Full
	// Denied: the user may not do this.
	Denied
	// Damaged: the database's file is.
	Damaged
)

// Dialect is what databases do not have in common.
type Dialect struct {
	// Name names the database: "postgresql".
	Name string
	// Text and Bytes are the types of columns. Text is compared byte by byte.
	Text, Bytes string
	// Lock is a statement that makes other migrations wait for the end of the transaction. It
	// may be empty.
	Lock string
	// TableExists is a query whose one parameter is the name of a table, and whose one row is
	// the number of tables that have it.
	TableExists string
	// Classify tells what an error means.
	Classify func(error) Class
	// Refused tells whether an error of a commit says that nothing was committed. Of any other
	// error of a commit the outcome is not known.
	Refused func(error) bool
}
