// Package object keeps records of releases as secrets or configs of a cluster's store.
//
// These cannot be changed but for their labels, and have at most some hundred kilobytes. So a
// record is made of several of them:
//
//   - its head: an object whose labels tell all of the head, with a few bytes of data. Its name
//     is made of a hash of the key, so that a key may be long, and case counts;
//   - its chunks: objects of 256 KiB at most that hold the body. Each body has an upload ID,
//     which the head tells, and from which the names and IDs of its chunks are made;
//   - a mark, while it is deployed and does not overlap: an object whose name is made of
//     namespace and name. Names are unique in a store, so no other revision can have it.
//
// A change is one transaction. Only a body that is too large for one is staged: the first
// transactions store chunks, with a stage object that names the upload, and the last one stores
// the rest, writes the head, removes the chunks of the old body, and takes the stage away. What
// is staged when a program dies is found and removed by Sweep. A sweep takes the stage away,
// too, so that a slow upload and a sweep cannot both succeed.
//
// The state belongs to the Store. A Driver keeps none, and may be used from anywhere but from
// within a transaction of the store; a Planner gives what is to be done within one.
package object
