// Package sql keeps records of releases in a relational database. What is the same for all of
// them is here: the schema, its migrations, and the statements. Packages postgres and sqlite
// open a database; a program that does not import them does not carry them.
//
// The state belongs to the database. A head and its body are rows of two tables, so that a list
// of heads reads no body. Every change is one transaction, so there is nothing to sweep. All
// writes go one after another through the row of the table holdfast_clock, which gives the
// versions: they are the same in all connections, and never come again. That of each name at
// most one revision is deployed is an index of the database, whatever writes to it.
//
// A Driver holds connections until Close. It may be used by many goroutines, but not from
// within a transaction of the same SQLite database, which it would wait for.
package sql
