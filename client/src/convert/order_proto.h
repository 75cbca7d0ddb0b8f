// Orders of transfers between structs and messages.
//
// ToProto fills a message that is empty before; FromProto fills a struct that is
// default-constructed before.
#pragma once

#include "stepcast/order.h"
#include "stepcast/v1/order.pb.h"

namespace stepcast::client {

void ToProto(const OptimizeOrderRequest& from, v1::OptimizeOrderRequest& to);

void ToProto(const RankedTransfer& from, v1::RankedTransfer& to);
void FromProto(const v1::RankedTransfer& from, RankedTransfer& to);

void ToProto(const OrderSpeedup& from, v1::OrderSpeedup& to);
void FromProto(const v1::OrderSpeedup& from, OrderSpeedup& to);

void ToProto(const OrderBaseline& from, v1::OrderBaseline& to);
void FromProto(const v1::OrderBaseline& from, OrderBaseline& to);

void ToProto(const TransferOrderResult& from, v1::TransferOrderResult& to);
void FromProto(const v1::TransferOrderResult& from, TransferOrderResult& to);

void ToProto(const OptimizeOrderResponse& from, v1::OptimizeOrderResponse& to);
void FromProto(const v1::OptimizeOrderResponse& from, OptimizeOrderResponse& to);

}  // namespace stepcast::client
