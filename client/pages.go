package client

import (
	"context"
	"fmt"
	"iter"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/internal/errkind"
)

// pageSize is how many objects a list asks for at once.
const pageSize = 1000

// historyPage is how many versions a history asks for at once: each has an object in full.
const historyPage = 100

// Page is one page of a list.
type Page[T any] struct {
	Items    []T
	Continue string // token for the next page; empty after the last
}

// Pages goes through the pages of a list, which list returns by token. All pages are of one
// revision. If that is compacted on the way, the list is begun anew, once, at the present
// revision, and objects that were already given are left out, by their key.
func Pages[T any](
	ctx context.Context, key func(T) string, list func(ctx context.Context, token string) (Page[T], error),
) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		given := make(map[string]bool)
		for token, restarted := "", false; ; {
			page, err := list(ctx, token)
			if token != "" && !restarted && errkind.Is(err, errkind.OutOfRange) {
				token, restarted = "", true
				continue
			}
			if err != nil {
				yield(none, err)
				return
			}
			for _, item := range page.Items {
				k := key(item)
				if given[k] {
					continue
				}
				given[k] = true
				if !yield(item, nil) {
					return
				}
			}
			if page.Continue == "" {
				return
			}
			token = page.Continue
		}
	}
}

// Collect returns all that a sequence gives, or its error.
func Collect[T any](seq iter.Seq2[T, error]) ([]T, error) {
	var all []T
	for item, err := range seq {
		if err != nil {
			return nil, err
		}
		all = append(all, item)
	}
	return all, nil
}

// Nodes goes through the nodes that pass the filters, which may be nil.
func (c *Client) Nodes(ctx context.Context, f *api.ListNodesRequest_Filters) iter.Seq2[*api.Node, error] {
	return Pages(ctx, (*api.Node).GetID, func(ctx context.Context, token string) (Page[*api.Node], error) {
		r, err := c.Control().ListNodes(ctx, &api.ListNodesRequest{Filters: f, Limit: pageSize, Continue: token})
		return Page[*api.Node]{r.GetNodes(), r.GetContinue()}, err
	})
}

// Services goes through the services that pass the filters, which may be nil.
func (c *Client) Services(ctx context.Context, f *api.ListServicesRequest_Filters) iter.Seq2[*api.Service, error] {
	return Pages(ctx, (*api.Service).GetID, func(ctx context.Context, token string) (Page[*api.Service], error) {
		r, err := c.Control().ListServices(ctx, &api.ListServicesRequest{Filters: f, Limit: pageSize, Continue: token})
		return Page[*api.Service]{r.GetServices(), r.GetContinue()}, err
	})
}

// Tasks goes through the tasks that pass the filters, which may be nil.
func (c *Client) Tasks(ctx context.Context, f *api.ListTasksRequest_Filters) iter.Seq2[*api.Task, error] {
	return Pages(ctx, (*api.Task).GetID, func(ctx context.Context, token string) (Page[*api.Task], error) {
		r, err := c.Control().ListTasks(ctx, &api.ListTasksRequest{Filters: f, Limit: pageSize, Continue: token})
		return Page[*api.Task]{r.GetTasks(), r.GetContinue()}, err
	})
}

// Networks goes through the networks that pass the filters, which may be nil.
func (c *Client) Networks(ctx context.Context, f *api.ListNetworksRequest_Filters) iter.Seq2[*api.Network, error] {
	return Pages(ctx, (*api.Network).GetID, func(ctx context.Context, token string) (Page[*api.Network], error) {
		r, err := c.Control().ListNetworks(ctx, &api.ListNetworksRequest{Filters: f, Limit: pageSize, Continue: token})
		return Page[*api.Network]{r.GetNetworks(), r.GetContinue()}, err
	})
}

// Clusters goes through the clusters that pass the filters, which may be nil.
func (c *Client) Clusters(ctx context.Context, f *api.ListClustersRequest_Filters) iter.Seq2[*api.Cluster, error] {
	return Pages(ctx, (*api.Cluster).GetID, func(ctx context.Context, token string) (Page[*api.Cluster], error) {
		r, err := c.Control().ListClusters(ctx, &api.ListClustersRequest{Filters: f, Limit: pageSize, Continue: token})
		return Page[*api.Cluster]{r.GetClusters(), r.GetContinue()}, err
	})
}

// Secrets goes through the secrets that pass the filters, which may be nil.
func (c *Client) Secrets(ctx context.Context, f *api.ListSecretsRequest_Filters) iter.Seq2[*api.Secret, error] {
	return Pages(ctx, (*api.Secret).GetID, func(ctx context.Context, token string) (Page[*api.Secret], error) {
		r, err := c.Control().ListSecrets(ctx, &api.ListSecretsRequest{Filters: f, Limit: pageSize, Continue: token})
		return Page[*api.Secret]{r.GetSecrets(), r.GetContinue()}, err
	})
}

// Configs goes through the configs that pass the filters, which may be nil.
func (c *Client) Configs(ctx context.Context, f *api.ListConfigsRequest_Filters) iter.Seq2[*api.Config, error] {
	return Pages(ctx, (*api.Config).GetID, func(ctx context.Context, token string) (Page[*api.Config], error) {
		r, err := c.Control().ListConfigs(ctx, &api.ListConfigsRequest{Filters: f, Limit: pageSize, Continue: token})
		return Page[*api.Config]{r.GetConfigs(), r.GetContinue()}, err
	})
}

// List goes through the objects of one kind that the selector picks.
func (c *Client) List(
	ctx context.Context, kind holdfast.Kind, selector holdfast.Selector,
) iter.Seq2[*holdfast.Object, error] {
	return c.Find(ctx, &holdfast.ListRequest{Kind: kind, Selector: selector})
}

// Find goes through the objects that a request asks for, in its order. The request's limit and
// token are those of a page, and are set here.
func (c *Client) Find(ctx context.Context, r *holdfast.ListRequest) iter.Seq2[*holdfast.Object, error] {
	return Pages(ctx, objectID, func(ctx context.Context, token string) (Page[*holdfast.Object], error) {
		page := r.Copy()
		page.Limit, page.Continue = pageSize, token
		r, err := c.Objects().List(ctx, page)
		return Page[*holdfast.Object]{r.GetObjects(), r.GetContinue()}, err
	})
}

// History goes through the versions of an object that a request asks for, in its order. The
// request's limit and token are those of a page, and are set here.
func (c *Client) History(ctx context.Context, r *holdfast.HistoryRequest) iter.Seq2[*holdfast.Version, error] {
	// A name may stand for several objects, which one transaction may have changed.
	key := func(v *holdfast.Version) string { return fmt.Sprintf("%d/%s", v.Revision, objectID(v.Object)) }
	return Pages(ctx, key, func(ctx context.Context, token string) (Page[*holdfast.Version], error) {
		page := r.Copy()
		page.Limit, page.Continue = historyPage, token
		r, err := c.Objects().History(ctx, page)
		return Page[*holdfast.Version]{r.GetVersions(), r.GetContinue()}, err
	})
}

// Diff compares two revisions, and returns all pages as one. The request's limit and token are
// those of a page, and are set here.
func (c *Client) Diff(ctx context.Context, r *holdfast.DiffRequest) (*holdfast.DiffResponse, error) {
	page, all := r.Copy(), &holdfast.DiffResponse{}
	page.Limit, page.Continue = pageSize, ""
	for {
		r, err := c.Objects().Diff(ctx, page)
		if err != nil {
			return nil, err
		}
		all.From, all.To = r.From, r.To
		all.Objects = append(all.Objects, r.Objects...)
		if r.Continue == "" {
			return all, nil
		}
		page.Continue = r.Continue
	}
}

// objectID returns the ID of whatever an object holds.
func objectID(o *holdfast.Object) string {
	switch t := o.GetTarget().(type) {
	case *holdfast.Object_Node:
		return t.Node.GetID()
	case *holdfast.Object_Service:
		return t.Service.GetID()
	case *holdfast.Object_Task:
		return t.Task.GetID()
	case *holdfast.Object_Network:
		return t.Network.GetID()
	case *holdfast.Object_Cluster:
		return t.Cluster.GetID()
	case *holdfast.Object_Secret:
		return t.Secret.GetID()
	case *holdfast.Object_Config:
		return t.Config.GetID()
	}
	return ""
}

// kindOf returns the kind of whatever an object holds.
func kindOf(o *holdfast.Object) holdfast.Kind {
	switch o.GetTarget().(type) {
	case *holdfast.Object_Node:
		return holdfast.Kind_KIND_NODE
	case *holdfast.Object_Service:
		return holdfast.Kind_KIND_SERVICE
	case *holdfast.Object_Task:
		return holdfast.Kind_KIND_TASK
	case *holdfast.Object_Network:
		return holdfast.Kind_KIND_NETWORK
	case *holdfast.Object_Cluster:
		return holdfast.Kind_KIND_CLUSTER
	case *holdfast.Object_Secret:
		return holdfast.Kind_KIND_SECRET
	case *holdfast.Object_Config:
		return holdfast.Kind_KIND_CONFIG
	}
	return holdfast.Kind_KIND_UNSPECIFIED
}
