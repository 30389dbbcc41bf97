package priorityclass

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/tideline-io/tideline/internal/platform/config"
)

var gold = config.Tier{Name: "gold", Priority: 200000, SurplusPriority: -50}

// seen is what comes of one start of the operator.
type seen struct {
	classes map[string]schedulingv1.PriorityClass
	// writes are the verbs of all requests that change something.
	writes []string
	log    string
}

// start runs the creator on a cluster with these classes, whose API server first refuses so many times.
func start(t *testing.T, refused int, there ...schedulingv1.PriorityClass) seen {
	t.Helper()
	g := NewWithT(t)
	var s seen
	builder := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			s.writes = append(s.writes, "create")
			if refused > 0 {
				refused--
				return apierrors.NewForbidden(schedulingv1.Resource("priorityclasses"), o.GetName(), errors.New("not yet"))
			}
			return c.Create(ctx, o, options...)
		},
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
			s.writes = append(s.writes, "update")
			return nil
		},
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			s.writes = append(s.writes, "patch")
			return nil
		},
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
			s.writes = append(s.writes, "delete")
			return nil
		},
	})
	for i := range there {
		builder.WithObjects(&there[i])
	}
	c := builder.Build()
	var log bytes.Buffer
	creator := &creator{
		client: c, live: c, tiers: append(config.DefaultTiers(), gold), log: zap.New(zap.WriteTo(&log)),
		again: wait.Backoff{Duration: time.Millisecond, Steps: 1},
	}
	g.Expect(creator.NeedLeaderElection()).To(BeTrue(), "replicas that do not lead create nothing")
	g.Expect(creator.Start(t.Context())).To(Succeed())
	list := &schedulingv1.PriorityClassList{}
	g.Expect(c.List(t.Context(), list)).To(Succeed())
	s.classes, s.log = map[string]schedulingv1.PriorityClass{}, log.String()
	for _, class := range list.Items {
		s.classes[class.Name] = class
	}
	return s
}

func TestMissingClassesAreCreated(t *testing.T) {
	for name, refused := range map[string]int{"at once": 0, "when the API server lets it": 4} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := start(t, refused, config.DefaultTiers().PriorityClasses()[:6]...)
			g.Expect(s.classes).To(HaveLen(9))
			for _, want := range append(gold.PriorityClasses(), config.NewHandoverClass()) {
				have := s.classes[want.Name]
				g.Expect(have.Value).To(Equal(want.Value))
				g.Expect(have.PreemptionPolicy).To(Equal(want.PreemptionPolicy))
				g.Expect(have.Description).To(Equal(want.Description))
				g.Expect(have.GlobalDefault).To(BeFalse())
			}
			g.Expect(s.writes).To(HaveLen(3 + refused))
			if refused == 0 {
				g.Expect(s.log).NotTo(ContainSubstring(`"level":"error"`))
			} else {
				g.Expect(s.log).To(ContainSubstring("create PriorityClass tideline-gold-surplus: "), "each that was refused is said")
			}
		})
	}
}

func TestClassesThatAreThereStay(t *testing.T) {
	g := NewWithT(t)
	other := gold.PriorityClasses()
	other[0].Value = 7
	s := start(t, 0, append(config.DefaultTiers().PriorityClasses(), other...)...)
	g.Expect(s.writes).To(BeEmpty())
	g.Expect(s.classes[gold.ClassName()].Value).To(BeEquivalentTo(7))
	g.Expect(s.log).To(And(ContainSubstring(`"level":"error"`), ContainSubstring("tideline-gold is 7 PreemptLowerPriority and must "+
		"be 200000 PreemptLowerPriority"), ContainSubstring("Name the tier otherwise")), "it is said with what to do")
	right := append(config.DefaultTiers().PriorityClasses(), gold.PriorityClasses()...)
	g.Expect(start(t, 0, right...).log).To(BeEmpty(), "and nothing of those that are right")
}

// The operator's rights are mended at some time or never: what else is wrong is said before.
func TestWrongValuesAreSaidThoughOthersCannotBeCreated(t *testing.T) {
	g := NewWithT(t)
	other := config.NewHandoverClass()
	other.Value = 7
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(&other).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			return apierrors.NewForbidden(schedulingv1.Resource("priorityclasses"), o.GetName(), errors.New("never"))
		},
	}).Build()
	said := false
	seen := writes(func(line string) {
		if strings.Contains(line, "tideline-handover is 7 Never and must be 1000000000 Never") {
			said = true
			cancel()
		}
	})
	creator := &creator{
		client: c, live: c, tiers: config.Tiers{gold}, log: zap.New(zap.WriteTo(seen)),
		again: wait.Backoff{Duration: time.Hour, Steps: 1},
	}
	g.Expect(creator.Start(ctx)).To(Succeed())
	g.Expect(said).To(BeTrue())
}

// writes tells of each line of a log.
type writes func(line string)

func (w writes) Write(line []byte) (int, error) {
	w(string(line))
	return len(line), nil
}

func TestOneThatWasCreatedMeanwhileIsFine(t *testing.T) {
	g := NewWithT(t)
	c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, inner client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if err := inner.Create(ctx, o, options...); err != nil {
				return err
			}
			return apierrors.NewAlreadyExists(schedulingv1.Resource("priorityclasses"), o.GetName())
		},
	}).Build()
	var log bytes.Buffer
	creator := &creator{client: c, live: c, tiers: config.Tiers{gold}, log: zap.New(zap.WriteTo(&log))}
	g.Expect(creator.createMissing(t.Context())).To(Succeed())
}

func TestItEndsWithTheOperator(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithInterceptorFuncs(interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			cancel()
			return context.Canceled
		},
	}).Build()
	var log bytes.Buffer
	creator := &creator{
		client: c, live: c, tiers: config.DefaultTiers(), log: zap.New(zap.WriteTo(&log)),
		again: wait.Backoff{Duration: time.Hour, Steps: 1},
	}
	g.Expect(creator.Start(ctx)).To(Succeed())
	g.Expect(log.String()).To(BeEmpty())
}
