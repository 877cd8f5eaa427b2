// Package api is SwarmKit v2's published protobuf API, package docker.swarmkit.v1, as far as
// Holdfast speaks it. Names and numbers agree with SwarmKit's, so that its clients work;
// fields of our own start at 1000.
//
// The package holds protos and what is generated from them, and imports nothing of ours.
// Messages that are read from the store are shared: Copy before changing one.
package api
