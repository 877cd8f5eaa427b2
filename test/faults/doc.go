// Package faults holds tests that run managers as processes and do to them what befalls them:
// kills, pauses, full disks, damaged files, wrong starts and bad input.
//
// Each test has a short form. With HOLDFAST_SOAK set, some do more of the same.
package faults
