"""Orders of transfers, from the real server."""

import unittest

from contract import details_of, grpc, order_pb2, scenario_pb2, store
from patience import growing_seconds
from sample import message, recorded
from stepcastd import ServerTest

OPTIONS = scenario_pb2.SimulationOptions(step_variation="AS_RECORDED", steps_per_worker=60, warmup_steps=5, replications=2)
METHODS = [order_pb2.TIC, order_pb2.TAC, order_pb2.REVERSE, order_pb2.RANDOM, order_pb2.RECORDED, order_pb2.GRAPH, order_pb2.SEARCH]


class OrderTest(ServerTest):
    def setUp(self):
        super().setUp()
        self.name = self.server.profiles.CreateProfile(store.CreateProfileRequest(profile=message(recorded("resnet50_16")))).name

    def order(self, **request):
        return self.server.predictions.OptimizeOrder(order_pb2.OptimizeOrderRequest(**{"profile": self.name, "options": OPTIONS, "methods": METHODS, **request}))

    def test_a_search_is_never_worse_than_any_other_method(self):
        reply = self.order()
        by_method = {order.method: order for order in reply.orders}
        self.assertEqual(list(by_method), METHODS)
        search = by_method[order_pb2.SEARCH]
        self.assertEqual(search.makespan_ns, min(order.makespan_ns for order in reply.orders))
        self.assertEqual(by_method[reply.chosen].makespan_ns, search.makespan_ns)
        for order in reply.orders:
            self.assertGreaterEqual(order.makespan_ns, reply.order_lower_bound_ns)
            self.assertEqual(sorted(transfer.name for transfer in order.transfers), sorted(transfer.name for transfer in search.transfers))

    def test_what_orders_gain_is_said_against_three_others(self):
        reply = self.order(methods=[order_pb2.TAC])
        baselines = {baseline.transfer_order: baseline for baseline in reply.baselines}
        orders = scenario_pb2.ParameterServers
        self.assertEqual(set(baselines), {orders.RECORDED, orders.GRAPH, orders.RANDOM})
        self.assertEqual({speedup.over for speedup in reply.orders[0].speedups}, set(baselines))
        for speedup in reply.orders[0].speedups:
            baseline = baselines[speedup.over]
            self.assertAlmostEqual(speedup.speedup, reply.orders[0].steps_per_second / baseline.steps_per_second)
            self.assertLessEqual(baseline.confidence_interval.lower, baseline.examples_per_second)

    # TicTac, 6.2 and 6.3.
    def test_orders_that_nobody_enforces_spread_and_make_workers_wait(self):
        reply = self.order(methods=[order_pb2.TIC], scenario=scenario_pb2.Scenario(workers=4))
        seconds = lambda length: length.seconds + length.nanos / 1e9
        baselines = {baseline.transfer_order: baseline for baseline in reply.baselines}
        random = baselines[scenario_pb2.ParameterServers.RANDOM]
        self.assertEqual((random.orders, random.unique_orders), (100, 100))
        self.assertLess(random.least_scheduling_efficiency, random.scheduling_efficiency)
        self.assertLess(random.scheduling_efficiency, reply.orders[0].scheduling_efficiency)
        self.assertGreater(random.straggler_effect, reply.orders[0].straggler_effect)
        graph = baselines[scenario_pb2.ParameterServers.GRAPH]
        self.assertEqual((graph.orders, graph.unique_orders, graph.scheduling_efficiency), (1, 1, graph.least_scheduling_efficiency))
        for told in (*reply.baselines, *reply.orders):
            step = told.synchronous_step_time
            self.assertLessEqual(seconds(step.p50), seconds(step.p95))
            self.assertGreater(seconds(step.mean), 0)

    def test_inference_leaves_out_what_follows_the_forward_pass(self):
        whole, inference = self.order(methods=[order_pb2.TAC]), self.order(methods=[order_pb2.TAC], inference=True)
        self.assertLess(inference.operations, whole.operations)
        self.assertLess(inference.orders[0].makespan_ns, whole.orders[0].makespan_ns)
        self.assertEqual(len(inference.orders[0].transfers), len(whole.orders[0].transfers))

    def test_with_several_servers_each_has_ranks_of_its_own(self):
        reply = self.order(methods=[order_pb2.TAC], scenario=scenario_pb2.Scenario(workers=2, parameter_servers={"servers": 2}))
        ranks = {0: [], 1: []}
        for transfer in reply.orders[0].transfers:
            ranks[transfer.parameter_server].append(transfer.server_rank)
        for of_server in ranks.values():
            self.assertEqual(of_server, list(range(len(of_server))))

    def test_a_spent_time_budget_leaves_the_best_order_so_far_or_says_so(self):
        whole = self.order(methods=[order_pb2.SEARCH])
        for seconds in growing_seconds(0.001):
            try:
                reply = self.order(methods=[order_pb2.SEARCH], time_budget={"nanos": int(seconds % 1 * 1e9), "seconds": int(seconds)})
                break
            except grpc.RpcError as error:
                self.assertEqual(details_of(error).reason, "TIME_BUDGET_SPENT")
        self.assertEqual(len(reply.orders), 1)
        self.assertGreaterEqual(reply.orders[0].makespan_ns, whole.orders[0].makespan_ns)


if __name__ == "__main__":
    unittest.main()
