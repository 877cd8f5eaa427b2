// Package helm keeps the releases of a program that embeds the Helm SDK in Holdfast: Driver is
// a storage driver of Helm v4, over any driver of holdfast/release.
//
//	releases := storage.Init(helm.New(helm.Options{Driver: d, Namespace: "default"}))
//
// A record is what Helm's own driver for Kubernetes' secrets stores: the same key, the same
// labels, and as its body the same base64 of gzip of JSON. The state belongs to the driver
// below, which the caller closes. A Driver keeps none but its logger, and may be used by many
// goroutines; its calls block for Options.Timeout at most.
package helm
