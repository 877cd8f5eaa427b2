package object

import (
	"context"
	"iter"
	"time"

	"github.com/gogo/protobuf/types"

	"holdfast/api"
	"holdfast/api/holdfast"
	"holdfast/client"
	"holdfast/internal/errkind"
)

// Client is the configs of a cluster as a Store, over holdfast.v1.Objects. Secrets cannot be
// kept so: a cluster never tells their data. Make it with NewClient.
type Client struct{ cluster *client.Client }

// NewClient makes a store of the cluster's configs. The client stays the caller's to close.
func NewClient(c *client.Client) *Client { return &Client{c} }

// Get implements Store.
func (c *Client) Get(ctx context.Context, name string) (Object, error) {
	r, err := c.cluster.Objects().Get(ctx, &holdfast.GetRequest{Kind: holdfast.Kind_KIND_CONFIG, Name: name})
	if err != nil {
		return Object{}, err
	}
	return fromConfig(r.GetObject().GetConfig())
}

// List implements Store. It is of one revision, and asks for pages as they are needed.
func (c *Client) List(ctx context.Context, labels map[string]string) iter.Seq2[Object, error] {
	selector := holdfast.Selector{Labels: labels, NamePrefixes: []string{NamesOf(labels)}} // names have an index
	return func(yield func(Object, error) bool) {
		for o, err := range c.cluster.List(ctx, holdfast.Kind_KIND_CONFIG, selector) {
			if err != nil {
				yield(Object{}, err)
				return
			}
			object, err := fromConfig(o.GetConfig())
			if !yield(object, err) || err != nil {
				return
			}
		}
	}
}

// Write implements Store.
func (c *Client) Write(ctx context.Context, ops []Op) ([]Object, error) {
	r, err := c.cluster.Objects().Txn(ctx, &holdfast.TxnRequest{Operations: operations(ops)})
	if err != nil {
		return nil, err
	}
	if len(r.Objects) != len(ops) {
		return nil, errkind.New(errkind.UnknownOutcome, "%d objects came of %d operations", len(r.Objects), len(ops))
	}
	left := make([]Object, len(ops))
	for i, op := range ops {
		if op.Do == Remove {
			continue
		}
		if left[i], err = fromConfig(r.Objects[i].GetConfig()); err != nil {
			return nil, err
		}
	}
	return left, nil
}

func operations(ops []Op) []*holdfast.Operation {
	all := make([]*holdfast.Operation, len(ops))
	for i, op := range ops {
		all[i] = operation(op)
	}
	return all
}

func operation(op Op) *holdfast.Operation {
	if op.Do == Remove {
		return &holdfast.Operation{Op: &holdfast.Operation_Remove{Remove: &holdfast.Remove{
			Kind: holdfast.Kind_KIND_CONFIG, ID: op.ID, Version: op.Version,
		}}}
	}
	object := &holdfast.Object{Target: &holdfast.Object_Config{Config: &api.Config{
		ID:   op.ID,
		Meta: api.Meta{Version: api.Version{Index: op.Version}},
		Spec: api.ConfigSpec{Annotations: api.Annotations{Name: op.Name, Labels: op.Labels}, Data: op.Data},
	}}}
	if op.Do == SetLabels {
		return &holdfast.Operation{Op: &holdfast.Operation_Update{Update: &holdfast.Update{Object: object}}}
	}
	return &holdfast.Operation{Op: &holdfast.Operation_Create{Create: object}}
}

func fromConfig(c *api.Config) (Object, error) {
	if c == nil {
		return Object{}, errkind.New(errkind.Internal, "the reply has no config")
	}
	created := time.Time{}
	if c.Meta.CreatedAt != nil {
		var err error
		if created, err = types.TimestampFromProto(c.Meta.CreatedAt); err != nil {
			return Object{}, (&errkind.Error{Field: "meta.created_at", Msg: err.Error(), Err: err}).On("config", c.ID)
		}
	}
	return Object{
		ID: c.ID, Name: c.Spec.Annotations.Name, Version: c.Meta.Version.Index, Created: created,
		Labels: c.Spec.Annotations.Labels, Data: c.Spec.Data,
	}, nil
}
